// Query strings and forms out of a map: lists repeat the key, null is left out.

import type { Json } from '../../exact-json.ts';
import { RequestFault } from './request-fault.ts';
import { scalarText } from './scalar.ts';

export type Pair = readonly [name: string, value: string];

/**
 * @param what names the map in errors (`query`, `form`).
 * @throws RequestFault for a member that is a map, a list in a list, or no finite number.
 */
export function pairsOf(value: Json | undefined, what: string): Pair[] {
  if (value === undefined || value === null) return [];
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new RequestFault(`${what} must be a map of names and values`);
  }
  return Object.entries(value).flatMap(([name, member]) =>
    (Array.isArray(member) ? member : [member])
      .filter((item) => item !== null && item !== undefined)
      .map((item): Pair => {
        const text = scalarText(item);
        if (text === undefined) {
          throw new RequestFault(`${what}.${name} must be text, a number, true or false, or a list of those`);
        }
        return [name, text];
      }),
  );
}

/** `a=1&b=2`, with spaces as `%20`. */
export function encodePairs(pairs: readonly Pair[]): string {
  return pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');
}

/** The query without the pairs that `drop` names; the rest is kept letter for letter. */
export function withoutPairs(query: string, drop: (name: string, value: string) => boolean): string {
  return query
    .split('&')
    .filter((piece) => {
      const [pair] = new URLSearchParams(piece);
      return pair === undefined ? piece !== '' : !drop(pair[0], pair[1]);
    })
    .join('&');
}

/** Joins the pieces that are not empty. */
export function joinQueries(...pieces: readonly string[]): string {
  return pieces.filter((piece) => piece !== '').join('&');
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
