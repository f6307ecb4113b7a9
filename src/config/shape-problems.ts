// What a schema says about a file's shape, in words of the file: place, unknown keys, suggestions.

import type { z } from 'zod';
import type { Problem } from '../errors.ts';
import type { Json } from '../exact-json.ts';
import { suggestion } from './did-you-mean.ts';
import type { Path } from './driver-format.ts';
import { knownKeys } from './shape.ts';
import type { YamlSource } from './yaml.ts';

export interface ShapeProblem extends Problem {
  at: Path;
  /** An unknown key that resembles no known one: the rest of its map is still sound. */
  strayKey: boolean;
  unknownKey: boolean;
}

/** Turns a schema's issues into problems with places. */
export function shapeProblems(issues: readonly z.core.$ZodIssue[], source: YamlSource): ShapeProblem[] {
  return issues.flatMap((issue) => translate(issue, [], source));
}

/** The problem without what only the loader needs. */
export function plainProblem({
  at: _at,
  strayKey: _strayKey,
  unknownKey: _unknownKey,
  ...problem
}: ShapeProblem): Problem {
  return problem;
}

function translate(issue: z.core.$ZodIssue, base: Path, source: YamlSource): ShapeProblem[] {
  const path: Path = [...base, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))];
  const value = valueAt(source.value, path);
  const one = (message: string, hint?: string): ShapeProblem[] => [
    { ...source.problem(path, message, { hint }), at: path, unknownKey: false, strayKey: false },
  ];
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownKey(key, knownKeys(issue.message), path, source));
    case 'invalid_union':
      return translateUnion(issue, path, value, source);
    case 'invalid_key':
      return [
        {
          ...source.problem(path, issue.issues[0]?.message ?? 'is no valid name', { key: true }),
          at: path,
          unknownKey: false,
          strayKey: false,
        },
      ];
    case 'invalid_type':
      if (value === undefined) return one('is missing');
      return issue.message.startsWith('Invalid input')
        ? one(expected(issue.expected), typeHint(issue, value))
        : one(issue.message);
    case 'invalid_value':
      if (value === undefined) return one('is missing');
      return one(...choice(issue.values, value));
    case 'too_small':
      return one(issue.message.startsWith('Too small') ? tooSmall(issue) : issue.message);
    case 'too_big':
      return one(issue.message.startsWith('Too big') ? `must be at most ${issue.maximum}` : issue.message);
    default:
      return one(issue.message);
  }
}

function tooSmall(issue: z.core.$ZodIssueTooSmall): string {
  if (issue.origin === 'string') return 'must not be empty';
  return issue.origin === 'array' ? 'the list is empty' : `must be at least ${issue.minimum}`;
}

function unknownKey(key: string, known: readonly string[], path: Path, source: YamlSource): ShapeProblem {
  const near = suggestion(key, known);
  const hint = near === '' && known.length > 0 ? `known here: ${known.join(', ')}` : undefined;
  const at = [...path, key];
  return {
    ...source.problem(at, `unknown key "${key}"${near}`, { key: true, hint }),
    at,
    unknownKey: true,
    strayKey: near === '',
  };
}

/** Of a union's branches the one that fits best speaks: the one that fails deepest, not at its root. */
function translateUnion(
  issue: z.core.$ZodIssueInvalidUnion,
  path: Path,
  value: Json | undefined,
  source: YamlSource,
): ShapeProblem[] {
  if (value === undefined)
    return [{ ...source.problem(path, 'is missing'), at: path, unknownKey: false, strayKey: false }];
  const inside = issue.errors.filter((branch) => branch.length > 0 && !branch.some(failsAtRoot));
  const best = inside.toSorted((a, b) => a.length - b.length)[0];
  if (best !== undefined) return best.flatMap((inner) => translate(inner, path, source));
  const options = [...new Set(issue.errors.flat().filter((inner) => inner.path.length === 0))];
  const message = issue.message.startsWith('Invalid input') ? unionMessage(options) : issue.message;
  return [{ ...source.problem(path, message), at: path, unknownKey: false, strayKey: false }];
}

function failsAtRoot(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 0 && issue.code !== 'unrecognized_keys' && issue.code !== 'too_small';
}

function unionMessage(issues: readonly z.core.$ZodIssue[]): string {
  const types = issues.flatMap((issue) => (issue.code === 'invalid_type' ? [typeWord(issue.expected)] : []));
  return types.length > 0 ? `must be ${[...new Set(types)].join(' or ')}` : 'has none of the possible forms';
}

function expected(type: string): string {
  return `must be ${typeWord(type)}`;
}

function typeWord(type: string): string {
  const words: { [type: string]: string } = {
    string: 'text',
    number: 'a number',
    int: 'a whole number',
    boolean: 'true or false',
    object: 'a map',
    record: 'a map',
    array: 'a list',
  };
  return words[type] ?? type;
}

function typeHint(issue: z.core.$ZodIssueInvalidType, value: Json): string | undefined {
  if (issue.expected === 'string' && (typeof value === 'number' || typeof value === 'boolean'))
    return `quote it: "${String(value)}"`;
  return undefined;
}

function choice(values: readonly unknown[], value: Json): [string, string?] {
  const words = values.map(String);
  const near = typeof value === 'string' ? suggestion(value, words) : '';
  return [words.length === 1 ? `must be ${words[0]}` : `must be one of ${words.join(', ')}${near}`];
}

function valueAt(value: Json, path: Path): Json | undefined {
  let current: Json | undefined = value;
  for (const part of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    if (Array.isArray(current)) current = typeof part === 'number' ? current[part] : undefined;
    else current = Object.hasOwn(current, part) ? current[part] : undefined;
  }
  return current;
}
