// YAML with positions: one file as plain data, and the line and column of every key and value in it.

import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseDocument,
  type Scalar,
  type YAMLError,
} from 'yaml';
import { byPlace, type Problem } from '../errors.ts';
import { type Json, type JsonObject, maxJsonDepth } from '../exact-json.ts';
import type { Path } from './driver-format.ts';
import { numberProblem } from './yaml-number.ts';
import { scalarOffset } from './yaml-scalar.ts';

export interface YamlSource {
  file: string;
  /** Numbers are JavaScript numbers: spellings that lose digits were refused. */
  value: Json;
  /**
   * A problem at a place of the file; a path that isn't there falls back to its nearest parent.
   * `key`: point at the key instead of the value. `offset`: index into the text value at `path`.
   */
  problem(
    path: Path,
    message: string,
    options?: { hint?: string | undefined; key?: boolean; offset?: number },
  ): Problem;
}

/** Larger files are refused; the largest adapter known has 20 KB. */
const maxTextLength = 1024 * 1024;

/**
 * Reads one YAML 1.2 document. Refused, each with its place: syntax errors (only the first is told, as they
 * cascade), duplicate keys, anchors, aliases, merge keys, `__proto__` keys, unknown tags, other YAML versions, and numbers
 * that are not written as JSON writes them.
 */
export function parseYaml(
  text: string,
  file: string,
): { source: YamlSource | undefined; problems: Problem[] } {
  const whole = (message: string, hint?: string): { source: undefined; problems: Problem[] } => ({
    source: undefined,
    problems: [problemAt(file, { line: 1, col: 1 }, '', message, hint)],
  });
  if (text.length > maxTextLength) return whole(`the file is larger than ${maxTextLength} characters`);
  const lines = new LineCounter();
  let document: Document.Parsed;
  let twin: Scalar | undefined;
  const sameKey = (first: unknown, second: unknown): boolean => {
    const same = isSameKey(first, second);
    if (same && isScalar(first)) twin ??= first;
    return same;
  };
  try {
    document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: sameKey,
      // Binary values, sets and the like have no JSON form.
      resolveKnownTags: false,
    });
  } catch (error) {
    // The parser recurses: a file of ten thousand opening brackets overflows its stack.
    if (error instanceof RangeError) return whole('the file is nested too deeply');
    throw error;
  }
  const fault = document.errors[0] ?? document.warnings[0];
  if (fault?.message.startsWith('Maximum call stack')) return whole('the file is nested too deeply');
  if (fault !== undefined)
    return { source: undefined, problems: [syntaxProblem(file, text, lines, fault, twin)] };
  if (document.directives.yaml.explicit && document.directives.yaml.version !== '1.2')
    return whole(`YAML ${document.directives.yaml.version} is not supported`, 'remove the %YAML line');

  const places = new Map<string, Place>();
  const problems: Problem[] = [];
  const value = document.contents === null ? null : read(document.contents, [], 0);
  const source: YamlSource = {
    file,
    value,
    problem: (path, message, options = {}) => {
      const place = nearestPlace(places, path);
      const exact = keyOf(path) === place.path;
      const start =
        options.key && exact ? (place.key ?? place.start) : valueStart(place, exact, options.offset, text);
      return problemAt(file, lines.linePos(start), dotted(path), message, options.hint);
    },
  };
  problems.sort(byPlace);
  return { source, problems };

  function read(node: ParsedNode, path: Path, depth: number, key?: number): Json {
    const start = node.range[0];
    const place: Place = { path: keyOf(path), start, key, scalar: isScalar(node) ? node : undefined };
    places.set(place.path, place);
    const fail = (offset: number, message: string, hint?: string): null => {
      problems.push(problemAt(file, lines.linePos(offset), dotted(path), message, hint));
      return null;
    };
    if (depth > maxJsonDepth) return fail(start, `nested deeper than ${maxJsonDepth} levels`);
    if (isAlias(node)) return fail(start, 'aliases are not supported', 'write the value out');
    if (node.anchor !== undefined) fail(start, ...noAnchor(node.anchor));
    if (isSeq(node)) return node.items.map((item, index) => read(item, [...path, index], depth + 1));
    if (isMap(node)) return readMap(node, path, depth);
    const misspelt = numberProblem(node);
    // The text stands in for the number, so that nothing else is said about the place.
    if (misspelt) return fail(start, misspelt.message, misspelt.hint) ?? node.source ?? null;
    return scalarValue(node);
  }

  function readMap(node: ParsedNode & { items: unknown[] }, path: Path, depth: number): JsonObject {
    const result: JsonObject = {};
    for (const pair of node.items as { key: ParsedNode; value: ParsedNode | null }[]) {
      const at = pair.key.range[0];
      const refuse = (message: string, hint?: string): void => {
        problems.push(problemAt(file, lines.linePos(at), dotted(path), message, hint));
      };
      if (!isScalar(pair.key)) {
        refuse('a key must be text');
        continue;
      }
      if (pair.key.anchor !== undefined) refuse(...noAnchor(pair.key.anchor));
      const misspelt = numberProblem(pair.key);
      if (misspelt) {
        refuse(misspelt.message, misspelt.hint);
        continue;
      }
      const name = pair.key.value === null ? (pair.key.source ?? '') : String(pair.key.value);
      if (name === '<<' && pair.key.type === 'PLAIN')
        refuse('merge keys are not supported', 'write the fields out');
      else if (name === '__proto__') refuse('the key __proto__ is not allowed');
      else if (Object.hasOwn(result, name)) refuse(`the key ${name} is there twice`);
      else if (pair.value === null) {
        const place: Place = { path: keyOf([...path, name]), start: at, key: at, scalar: undefined };
        places.set(place.path, place);
        result[name] = null;
      } else result[name] = read(pair.value, [...path, name], depth + 1, at);
    }
    return result;
  }
}

function noAnchor(name: string): [message: string, hint: string] {
  return ['anchors are not supported', `remove &${name}`];
}

/** Numbers are compared as they are written: two long ones must not count as the same key. */
function isSameKey(a: unknown, b: unknown): boolean {
  if (!isScalar(a) || !isScalar(b) || a.value !== b.value) return false;
  return typeof a.value !== 'number' || a.source === b.source;
}

interface Place {
  path: string;
  start: number;
  key: number | undefined;
  scalar: Scalar.Parsed | undefined;
}

function scalarValue(node: ParsedNode): Json {
  const value = isScalar(node) ? node.value : null;
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
    return value;
  return String(value);
}

function keyOf(path: Path): string {
  return JSON.stringify(path);
}

function dotted(path: Path): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${part}`))
    .join('');
}

function nearestPlace(places: ReadonlyMap<string, Place>, path: Path): Place {
  for (let length = path.length; length >= 0; length--) {
    const place = places.get(keyOf(path.slice(0, length)));
    if (place !== undefined) return place;
  }
  return { path: '[]', start: 0, key: undefined, scalar: undefined };
}

/** A missing field is reported at its parent's key, as that is where the eye must go. */
function valueStart(place: Place, exact: boolean, offset: number | undefined, text: string): number {
  if (!exact) return place.key ?? place.start;
  if (offset === undefined || place.scalar === undefined) return place.start;
  return scalarOffset(place.scalar, text, offset);
}

function problemAt(
  file: string,
  at: { line: number; col: number },
  path: string,
  message: string,
  hint?: string,
): Problem {
  const problem: Problem = { file, line: Math.max(1, at.line), column: Math.max(1, at.col), path, message };
  if (hint !== undefined) problem.hint = hint;
  return problem;
}

/** `twin`: the first key of the first two that are the same. */
function syntaxProblem(
  file: string,
  text: string,
  lines: LineCounter,
  fault: YAMLError,
  twin: Scalar | undefined,
): Problem {
  const at = lines.linePos(fault.pos[0]);
  const line = text.split('\n')[at.line - 1] ?? '';
  const message =
    fault.code === 'DUPLICATE_KEY' && twin?.range
      ? `"${String(twin.value)}" is already at line ${lines.linePos(twin.range[0]).line}`
      : syntaxMessage(fault);
  return problemAt(file, at, '', message, syntaxHint(fault, line));
}

/** The parser speaks to programmers; a few of its messages are put in words of the file. */
function syntaxMessage(fault: YAMLError): string {
  if (fault.code === 'DUPLICATE_KEY') return 'the same key is there twice';
  if (fault.code === 'MULTIPLE_DOCS') return 'the file holds several documents';
  const tag = standardTag(fault);
  if (tag !== undefined) return `the tag !!${tag} is not supported`;
  if (fault.message.startsWith('Missing closing "quote')) return 'a quote is not closed';
  const unclosed = /^Flow (sequence|map) .*must .*end with a/.exec(fault.message)?.[1];
  if (unclosed !== undefined) return `the ${unclosed === 'map' ? '{' : '['} is not closed`;
  return fault.message.replace(/\s+/g, ' ').trim();
}

/** `binary` of `!!binary`. */
function standardTag(fault: YAMLError): string | undefined {
  return /^Unresolved tag: tag:yaml\.org,2002:(\w+)/.exec(fault.message)?.[1];
}

function syntaxHint(fault: YAMLError, line: string): string | undefined {
  if (fault.code === 'DUPLICATE_KEY') return 'keep one of them';
  if (fault.code === 'TAB_AS_INDENT') return 'indent with spaces';
  if (fault.code === 'MULTIPLE_DOCS') return 'one file holds one document: remove the line ---';
  if (standardTag(fault) !== undefined) return 'write a plain value';
  const value = line.replace(/^[^:]*:\s*/, '');
  if (fault.code === 'TAG_RESOLVE_FAILED' || value.startsWith('!'))
    return "an expression that starts with ! must be quoted: '!has(job.id)'";
  if (fault.message.includes('flow-map-start') && line.includes(hole))
    return `inside { } or [ ] a hole must be quoted: "${hole} … }}"`;
  if (line.includes(' ? ') && line.includes(': '))
    return 'an expression with ": " must be quoted or written under ">-"';
  if (fault.message.startsWith('Nested mappings are not allowed')) return 'text with ": " must be quoted';
  if (/^[%@`]/.test(value)) return 'quote the value';
  return undefined;
}

const hole = '$' + '{{';
