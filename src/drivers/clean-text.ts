// Upstream text is data: control, bidirectional and invisible characters are stripped, lengths are capped.

import { capText } from '../cap-text.ts';
import { type Json, stringifyExact } from '../exact-json.ts';

/** Longest excerpt of an upstream's error body that a caller is shown, in code points. */
export const excerptLimit = 1_000;

// Controls but tab and line feed; bidirectional marks and isolates; zero-width and other format characters; tag
// characters and the selectors beyond the usual ones, which can hide text from people and show it to models.
const unwanted =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: removing control characters is the purpose.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e01ef}]/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence starts with a control character.
const terminalEscape = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** Text of several lines: line feeds and tabs stay. */
export function cleanText(text: string): string {
  return text.toWellFormed().replace(terminalEscape, '').replace(/\r\n?/g, '\n').replace(unwanted, '');
}

/**
 * One line of at most `limit` code points.
 * @param redact is given the clean text before it is cut: a secret must be found whole, and cleaning may join one.
 */
export function cleanLine(text: string, limit: number, redact: (text: string) => string): string {
  return capText(redact(cleanText(text).replace(/\s+/g, ' ').trim()), limit);
}

/** Strings of structured content, and its names, are cleaned like text; nothing in it is a known secret. */
export function cleanValue(value: Json, redact: (text: string) => string): Json {
  const clean = mapTexts(value, cleanText, (number) => number);
  // One look at the whole is far cheaper than one at each of its values, and hardly ever finds any.
  const whole = stringifyExact(clean);
  if (redact(whole) === whole) return clean;
  return mapTexts(clean, redact, (number) => {
    const digits = String(number);
    const shown = redact(digits);
    return shown === digits ? number : shown;
  });
}

function mapTexts(
  value: Json,
  text: (text: string) => string,
  number: (value: number | bigint) => Json,
): Json {
  if (typeof value === 'string') return text(value);
  if (typeof value === 'number' || typeof value === 'bigint') return number(value);
  if (Array.isArray(value)) return value.map((member) => mapTexts(member, text, number));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [text(name), mapTexts(member, text, number)]),
  );
}
