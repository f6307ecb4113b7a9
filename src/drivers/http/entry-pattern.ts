// Names of entries in an archive: one by its name, or all that fit a pattern.

import type { Scope } from '../../config/expression.ts';
import type { TextTemplate } from '../../config/template.ts';
import { RequestFault } from './request-fault.ts';

export interface EntryPattern {
  source: string;
  /** More than one entry may fit. */
  many: boolean;
  fits(name: string): boolean;
}

/** `some`: within a folder. `any`: across folders. `folders`: none or more whole ones. */
type Token = { text: string } | 'one' | 'some' | 'any' | 'folders';

/** Longest pattern; with the bounds of names it bounds what matching can cost. */
const longestPattern = 256;
const longestName = 1024;

/** What stands in holes is taken letter by letter. */
function isPattern(template: TextTemplate): boolean {
  return template.parts.some((part) => typeof part === 'string' && /[*?]/.test(part));
}

/** @throws RequestFault, EvaluationFault */
export function entryPattern(template: TextTemplate, scope: Scope): EntryPattern {
  const many = isPattern(template);
  const source = template.render(scope);
  if (source === '') throw new RequestFault('unzip gives no name');
  if (source.length > longestPattern)
    throw new RequestFault(`unzip gives more than ${longestPattern} characters`);
  if (!many) return { source, many, fits: (name) => name === source };
  const tokens = template.parts.flatMap((part): Token[] =>
    typeof part === 'string' ? tokensOf(part) : [{ text: String(part.evaluate(scope)) }],
  );
  return { source, many, fits: (name) => name.length <= longestName && matches(tokens, name) };
}

function tokensOf(pattern: string): Token[] {
  return (pattern.match(/\*\*+\/|\*\*+|[*?]|[^*?]+/g) ?? []).map((piece): Token => {
    if (/^\*\*+\/$/.test(piece)) return 'folders';
    if (piece.startsWith('**')) return 'any';
    if (piece === '*') return 'some';
    return piece === '?' ? 'one' : { text: piece };
  });
}

/** All places of the name that the tokens so far can reach: never goes back, whatever the pattern. */
function matches(tokens: readonly Token[], name: string): boolean {
  let reached = new Set([0]);
  for (const token of tokens) {
    const next = new Set<number>();
    for (const at of reached) for (const place of placesAfter(token, name, at, next)) next.add(place);
    reached = next;
  }
  return reached.has(name.length);
}

function* placesAfter(token: Token, name: string, at: number, known: Set<number>): Generator<number> {
  if (typeof token === 'object') {
    if (name.startsWith(token.text, at)) yield at + token.text.length;
    return;
  }
  if (token === 'one') {
    if (at < name.length && name[at] !== '/') yield at + 1;
    return;
  }
  yield at;
  for (let to = at + 1; to <= name.length; to++) {
    const slash = name[to - 1] === '/';
    if (token === 'some' && slash) return;
    if (token === 'folders' && !slash) continue;
    // Whatever follows has been reached from here before.
    if (known.has(to)) return;
    yield to;
  }
}
