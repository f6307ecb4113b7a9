// `${{ expression }}` holes in strings and structures.

import type { Json, JsonObject } from '../exact-json.ts';
import {
  brokenExpression,
  type CompileOptions,
  compileExpression,
  EvaluationFault,
  type Expression,
  type ExpressionProblem,
  type Scope,
} from './expression.ts';

/** Text with holes; every hole's value is turned into text. */
export interface TextTemplate {
  readonly source: string;
  readonly parts: readonly (string | Expression)[];
  readonly reads: ReadonlySet<string>;
  /** @throws EvaluationFault when a hole can't be evaluated, is empty, or gives a list or map. */
  render(scope: Scope): string;
}

/** A structure whose strings may hold holes; a string that is one hole keeps the value's type. */
export interface ValueTemplate {
  readonly reads: ReadonlySet<string>;
  /** Members whose hole is an empty optional are left out. @throws EvaluationFault */
  render(scope: Scope): Json | undefined;
}

/**
 * Compiles text with holes. `$${{` stands for a literal `${{`. Offsets of problems count from the start of
 * `source`. Never throws: a hole that doesn't compile becomes one that always faults.
 */
export function compileText(
  source: string,
  options: CompileOptions,
): { template: TextTemplate; problems: ExpressionProblem[] } {
  const { parts, problems } = compileParts(source, options);
  return { template: textTemplate(source, parts), problems };
}

export interface ValueProblem extends ExpressionProblem {
  /** Where in the structure the text stands. */
  path: readonly (string | number)[];
}

/** Compiles a structure; numbers spelt as whole numbers become bigint, as in everything exact. */
export function compileValue(
  raw: Json,
  options: CompileOptions,
): { template: ValueTemplate; problems: ValueProblem[] } {
  const problems: ValueProblem[] = [];
  const reads = new Set<string>();
  const node = compileNode(raw, [], { options, problems, reads });
  return { template: { reads, render: node }, problems };
}

/**
 * A hole's value as text, as every template writes it: numbers by their digits, booleans as words.
 * @throws EvaluationFault for nothing, null, a list or a map.
 */
function holeText(value: Json | undefined, source: string): string {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) throw new EvaluationFault(`\`${source}\` gives no value`);
  if (typeof value === 'object')
    throw new EvaluationFault(
      `\`${source}\` gives a ${Array.isArray(value) ? 'list' : 'map'}, which is not text`,
    );
  return String(value);
}

/** Whether a string of the file holds anything that a template would change. */
export function hasHole(source: string): boolean {
  return source.includes('${{');
}

/**
 * Index of text that looks like a hole of another language, such as `{{ args.x }}` or `${args.x}`, which would be
 * sent as it stands; -1 when there is none.
 */
export function foreignHole(source: string): number {
  return source.search(
    /(?<![${])(?:\$\{(?!\{)|\{\{?)\s*(?:args|job|task|confirm|env|secrets|response|fetched|item|answer)\.[^{}]*\}/,
  );
}

function textTemplate(source: string, parts: readonly (string | Expression)[]): TextTemplate {
  return {
    source,
    parts,
    reads: new Set(parts.flatMap((part) => (typeof part === 'string' ? [] : [...part.reads]))),
    render: (scope) =>
      parts
        .map((part) => (typeof part === 'string' ? part : holeText(part.evaluate(scope), part.source)))
        .join(''),
  };
}

function compileParts(
  source: string,
  options: CompileOptions,
): { parts: (string | Expression)[]; problems: ExpressionProblem[] } {
  const scan = scanHoles(source);
  const problems = [...scan.problems];
  const parts = scan.pieces.map((piece) => {
    if (piece.kind === 'text') return piece.text;
    const compiled = compileExpression(piece.source, options);
    problems.push(
      ...compiled.problems.map((problem) => ({ ...problem, offset: problem.offset + piece.offset })),
    );
    return compiled.expression ?? brokenExpression(piece.source);
  });
  return { parts, problems };
}

type Render = (scope: Scope) => Json | undefined;

interface ValueWalk {
  options: CompileOptions;
  problems: ValueProblem[];
  reads: Set<string>;
}

function compileNode(raw: Json, path: readonly (string | number)[], walk: ValueWalk): Render {
  if (typeof raw === 'string') return compileString(raw, path, walk);
  if (typeof raw === 'number') {
    const exact = Number.isSafeInteger(raw) ? BigInt(raw) : raw;
    return () => exact;
  }
  if (typeof raw !== 'object' || raw === null) return () => raw;
  if (Array.isArray(raw)) {
    const items = raw.map((item, index) => compileNode(item, [...path, index], walk));
    return (scope) => items.map((item) => item(scope)).filter((item) => item !== undefined);
  }
  const members = Object.entries(raw).map(([key, item]): [string, Render] => [
    key,
    compileNode(item, [...path, key], walk),
  ]);
  return (scope) => {
    const result: JsonObject = {};
    for (const [key, render] of members) {
      const value = render(scope);
      if (value !== undefined) result[key] = value;
    }
    return result;
  };
}

function compileString(source: string, path: readonly (string | number)[], walk: ValueWalk): Render {
  if (!hasHole(source)) return () => source;
  const { parts, problems } = compileParts(source, walk.options);
  walk.problems.push(...problems.map((problem) => ({ ...problem, path })));
  for (const part of parts) if (typeof part !== 'string') for (const name of part.reads) walk.reads.add(name);
  const [only] = parts;
  if (parts.length === 1 && only !== undefined && typeof only !== 'string')
    return (scope) => only.evaluate(scope);
  const template = textTemplate(source, parts);
  return (scope) => template.render(scope);
}

type Piece = { kind: 'text'; text: string } | { kind: 'hole'; source: string; offset: number };

/** Cuts text into literal pieces and holes. `offset` is where the hole's expression starts in the text. */
function scanHoles(source: string): { pieces: Piece[]; problems: ExpressionProblem[] } {
  const pieces: Piece[] = [];
  let text = '';
  let at = 0;
  while (at < source.length) {
    const open = source.indexOf('${{', at);
    if (open === -1) break;
    if (source[open - 1] === '$' && open - 1 >= at) {
      text += `${source.slice(at, open - 1)}\${{`;
      at = open + 3;
      continue;
    }
    text += source.slice(at, open);
    const close = holeEnd(source, open + 3);
    if (close === -1)
      return {
        pieces,
        problems: [{ offset: open, message: 'the hole is not closed', hint: 'end it with }}' }],
      };
    if (text !== '') pieces.push({ kind: 'text', text });
    text = '';
    const inner = source.slice(open + 3, close);
    const lead = inner.length - inner.trimStart().length;
    pieces.push({ kind: 'hole', source: inner.trim(), offset: open + 3 + lead });
    at = close + 2;
  }
  text += source.slice(at);
  if (text !== '') pieces.push({ kind: 'text', text });
  return { pieces, problems: [] };
}

/** Index of the `}}` that ends a hole, passing over CEL strings and map literals; -1 when there is none. */
function holeEnd(source: string, start: number): number {
  let depth = 0;
  for (let i = start; i < source.length; i++) {
    const char = source[i];
    if (char === '"' || char === "'") i = stringEnd(source, i) - 1;
    else if (char === '{') depth++;
    else if (char === '}') {
      if (depth > 0) depth--;
      else if (source[i + 1] === '}') return i;
    }
  }
  return -1;
}

/** Index after a CEL string that starts at `start` with its quote: simple or triple-quoted. */
function stringEnd(source: string, start: number): number {
  const quote = source[start] ?? '"';
  const mark = source.startsWith(quote.repeat(3), start) ? quote.repeat(3) : quote;
  for (let i = start + mark.length; i < source.length; i++) {
    if (source[i] === '\\') i++;
    else if (source.startsWith(mark, i)) return i + mark.length;
  }
  return source.length;
}
