// JSON text inside expressions: parseJson and toJson.

import { Optional } from '@marcbachmann/cel-js';
import { type Json, parseExact, stringifyExact } from '../exact-json.ts';
import { normalise } from './expression-value.ts';

/** Longest text that is parsed or made, in characters. */
const longestText = 1024 * 1024;

/** What the text says; whole numbers stay exact. The text itself is never in the error: it may be a secret. */
export function parseJson(text: string): Json {
  if (text.length > longestText) throw new Error(`the text is longer than ${longestText} characters`);
  try {
    return parseExact(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error('the text is not JSON');
    throw error;
  }
}

/** An empty optional stays empty. */
export function parseOptionalJson(value: Optional): Optional<unknown> {
  if (!value.hasValue()) return Optional.none();
  const text = value.value();
  if (typeof text !== 'string') throw new Error('parseJson wants a text');
  return Optional.of(parseJson(text));
}

/** JSON text of any value, without white space. */
export function toJson(value: unknown): string {
  const json = normalise(value, longestText);
  if (json === undefined) throw new Error('there is no value to write as JSON');
  return stringifyExact(json);
}
