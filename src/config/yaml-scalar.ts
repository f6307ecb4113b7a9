// Where a character of a YAML text value stands in the file: quotes, escapes, folding and indents in between.

import type { Scalar } from 'yaml';

/** Index into `text` of the character at `index` of the scalar's value. Exact but for unusual folding. */
export function scalarOffset(scalar: Scalar.Parsed, text: string, index: number): number {
  const value = typeof scalar.value === 'string' ? scalar.value : (scalar.source ?? '');
  let at = contentStart(scalar, text);
  const end = scalar.range[1];
  for (let i = 0; i < index && at < end; i++) {
    at = skipTo(value[i] ?? '', at, end, text, scalar.type) + width(text, at, scalar.type);
  }
  // What follows may again be folded: step over line ends and indents to the character itself.
  return Math.min(skipTo(value[index] ?? '', at, end, text, scalar.type), end);
}

function contentStart(scalar: Scalar.Parsed, text: string): number {
  const start = scalar.range[0];
  if (scalar.type === 'QUOTE_DOUBLE' || scalar.type === 'QUOTE_SINGLE') return start + 1;
  if (scalar.type !== 'BLOCK_LITERAL' && scalar.type !== 'BLOCK_FOLDED') return start;
  let at = text.indexOf('\n', start) + 1;
  while (text[at] === ' ') at++;
  return at;
}

/** The position of `char`, past the white space that YAML removed before it. */
function skipTo(char: string, at: number, end: number, text: string, type: Scalar.Type | undefined): number {
  if (text[at] === char || char === '') return at;
  if (type === 'QUOTE_DOUBLE' && text[at] === '\\') return at;
  const white = /[ \t\r\n]/;
  // A line end in the file is a space or a line end in the value.
  if (white.test(char)) return at;
  let next = at;
  while (next < end && white.test(text[next] ?? '')) next++;
  return text[next] === char || (type === 'QUOTE_DOUBLE' && text[next] === '\\') ? next : at;
}

/** How many characters of the file make one character of the value. */
function width(text: string, at: number, type: Scalar.Type | undefined): number {
  if (type === 'QUOTE_SINGLE' && text[at] === "'") return 2;
  if (type !== 'QUOTE_DOUBLE' || text[at] !== '\\') return 1;
  const escapes: { [letter: string]: number } = { x: 4, u: 6, U: 10 };
  return escapes[text[at + 1] ?? ''] ?? 2;
}
