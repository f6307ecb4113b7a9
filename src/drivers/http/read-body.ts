// What a step reads from the reply's bytes, whatever the reply says its type is.

import { type Json, parseExact } from '../../exact-json.ts';
import type { ReadKind } from './compiled.ts';
import { NotCsv, parseCsv } from './csv.ts';
import { webPage } from './web-page.ts';

export interface ReadBody {
  body: Json;
  /** A sentence, when the bytes are not what the step expects; `body` is then null. */
  unreadable?: string;
}

export interface ReplyFacts {
  status: number;
  contentType: string | undefined;
  /** Replaces known secrets in what is quoted of the body. */
  redact(text: string): string;
}

/** No body is no data: null for JSON, '' for text and base64, an empty list for JSON lines and CSV. */
export function readBody(kind: ReadKind, bytes: Buffer, facts: ReplyFacts): ReadBody {
  switch (kind) {
    case 'none':
      return { body: null };
    case 'text':
      return { body: decodeText(bytes) };
    case 'json':
      return readJson(decodeText(bytes), facts);
    case 'jsonl':
      return readLines(decodeText(bytes), facts);
    case 'csv':
      return readCsv(decodeText(bytes), facts);
    case 'base64':
      return { body: bytes.toString('base64') };
  }
}

/** Characters of a body that are looked at for secrets; far more than are quoted. */
const longestQuoted = 16_384;

/** `the reply (502, text/html) <why>: <first 200 characters>`, of a web page its title. */
export function unreadable(why: string, { status, contentType, redact }: ReplyFacts, text: string): ReadBody {
  // Redacted before it is cut: half a secret would not be recognised any more.
  const page = webPage(text);
  const quoted = page === undefined || page.title === '' ? text : page.title;
  const kind = page === undefined ? '' : page.asksToSignIn ? ' but a web page to sign in' : ' but a web page';
  const start = excerpt(redact(quoted.slice(0, longestQuoted)), 200);
  const type = contentType === undefined ? 'no content type' : excerpt(redact(contentType), 80);
  return {
    body: null,
    unreadable: `the reply (${status}, ${type}) ${why}${kind}${start === '' ? '' : `: ${start}`}`,
  };
}

/** UTF-8; invalid bytes are replaced, a byte order mark is dropped. */
export function decodeText(bytes: Buffer): string {
  return new TextDecoder().decode(bytes);
}

function readJson(text: string, facts: ReplyFacts): ReadBody {
  if (text.trim() === '') return { body: null };
  try {
    return { body: parseExact(text) };
  } catch (error) {
    return unreadable(whyNotJson(error), facts, text);
  }
}

function readLines(text: string, facts: ReplyFacts): ReadBody {
  const body: Json[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      body.push(parseExact(line));
    } catch (error) {
      return unreadable(`${whyNotJson(error)} in line ${index + 1}`, facts, line);
    }
  }
  return { body };
}

function readCsv(text: string, facts: ReplyFacts): ReadBody {
  // A page on one line would be a sound header line.
  if (webPage(text) !== undefined) return unreadable('is not CSV', facts, text);
  try {
    return { body: parseCsv(text) };
  } catch (error) {
    if (error instanceof NotCsv) return unreadable(error.message, facts, text);
    throw error;
  }
}

function whyNotJson(error: unknown): string {
  if (!(error instanceof SyntaxError)) throw error;
  // The parser's own messages quote the text, which follows anyway.
  return /^(nested deeper|the number)/.test(error.message)
    ? `can't be read (${error.message})`
    : 'is not JSON';
}

function excerpt(text: string, length: number): string {
  const plain = text
    .slice(0, 4 * length)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return [...plain].slice(0, length).join('');
}
