// Values in URL paths: each hole is one percent-encoded piece, and no segment may climb or vanish.

import type { Json } from '../../exact-json.ts';
import { RequestFault } from './request-fault.ts';
import { scalarText } from './scalar.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const control = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * The text of a hole in a URL's path. A list of texts is as many segments.
 * @throws RequestFault as {@link encodeHole}, and for an empty list.
 */
export function encodePathHole(value: Json | undefined, source: string): string {
  if (!Array.isArray(value)) return encodeHole(value, source);
  if (value.length === 0) throw new RequestFault(`${source} gives no segments; a path needs one`);
  return value.map((segment) => encodeHole(segment, source)).join('/');
}

/**
 * The text of a hole in a URL, encoded as data exactly once.
 * @param source the expression, to name it in the error.
 * @throws RequestFault when the value is empty, no single value, or holds control characters.
 */
export function encodeHole(value: Json | undefined, source: string): string {
  const text = scalarText(value);
  if (text === undefined) throw new RequestFault(`${source} gives no single value to put into the URL`);
  if (text === '') throw new RequestFault(`${source} is empty; a value in a URL can't be`);
  if (control.test(text)) throw new RequestFault(`${source} holds control characters; a URL can't`);
  try {
    return encodeURIComponent(text);
  } catch {
    throw new RequestFault(`${source} holds broken characters (half of a surrogate pair)`);
  }
}

/**
 * Refuses `.` and `..` as segments of an encoded path, also where only a server that decodes once or twice
 * more would see them (`%2e%2e`, `..%2fadmin`).
 * @throws RequestFault
 */
export function refuseDotSegments(path: string): void {
  for (const segment of path.split('/')) {
    for (const text of decodings(segment)) {
      if (text.split(/[/\\]/).some((part) => part === '.' || part === '..')) {
        throw new RequestFault(`a path segment can't be or hold "." or "..": ${segment.slice(0, 100)}`);
      }
    }
  }
}

export function hasControl(text: string): boolean {
  return control.test(text);
}

/** The segment as it is, and as it reads after one, two and three decodings. */
function decodings(segment: string): string[] {
  const texts = [segment];
  for (let text = segment; texts.length < 4; texts.push(text)) {
    // Piece by piece, so that one broken escape does not hide the others.
    const decoded = text.replace(/%(2e|2f|5c|25)/gi, (code) => decodeURIComponent(code));
    if (decoded === text) break;
    text = decoded;
  }
  return texts;
}
