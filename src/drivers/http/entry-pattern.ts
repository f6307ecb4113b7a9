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

const longestPattern = 256;
const longestName = 1024;

/** Most wildcards of a pattern, which bounds what matching costs. */
export const mostWildcards = 16;

/** Wildcards of a pattern; what stands in holes is taken letter by letter. */
export function wildcardsIn(template: TextTemplate): number {
  const tokens = template.parts.flatMap((part) => (typeof part === 'string' ? tokensOf(part) : []));
  return tokens.filter((token) => typeof token !== 'object').length;
}

/** @throws RequestFault, EvaluationFault */
export function entryPattern(template: TextTemplate, scope: Scope): EntryPattern {
  const many = wildcardsIn(template) > 0;
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

/** Which places of the name the tokens so far can reach: never goes back, whatever the pattern. */
function matches(tokens: readonly Token[], name: string): boolean {
  let reached = new Uint8Array(name.length + 1);
  reached[0] = 1;
  for (const token of tokens)
    reached = typeof token === 'object' ? skip(token.text, name, reached) : spread(token, name, reached);
  return reached[name.length] === 1;
}

function skip(text: string, name: string, reached: Uint8Array): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(reached.length);
  for (let at = 0; at < reached.length; at++)
    if (reached[at] === 1 && name.startsWith(text, at)) next[at + text.length] = 1;
  return next;
}

function spread(token: Exclude<Token, object>, name: string, reached: Uint8Array): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(reached.length);
  let any = false;
  for (let to = 0; to < reached.length; to++) {
    const slash = to > 0 && name[to - 1] === '/';
    const before = to > 0 && (token === 'one' ? reached[to - 1] : next[to - 1]) === 1;
    const here = token === 'any' ? before : token === 'folders' ? any && slash : before && !slash;
    if (here || (token !== 'one' && reached[to] === 1)) next[to] = 1;
    any ||= reached[to] === 1;
  }
  return next;
}
