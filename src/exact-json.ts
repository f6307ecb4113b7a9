// JSON that keeps every whole number exact: bigint inside, raw digits on the wire.
// Job ids above 2^53 must reach the upstream, the store and the client with all their digits.

export type Json = null | boolean | number | bigint | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

/** Whether a value is a map: no list, no null, nothing missing. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Deeper documents are refused: `JSON.stringify` of a very deep value overflows the stack. */
export const maxJsonDepth = 64;

/** Text that taskferry wrote itself: a value of the depth above inside the levels that results and replies add. */
const ownJsonDepth = 96;

/** Longer whole numbers are refused: reading, writing and computing with millions of digits takes seconds. */
const maxDigits = 1_000;

const wholeNumber = /^-?\d+$/;

/**
 * Parses JSON text; numbers spelt as whole numbers become `bigint`, all others stay `number`.
 * @throws SyntaxError when the text is not JSON, is nested deeper than {@link maxJsonDepth}, or holds a number
 *   that is not finite or a whole one of more than {@link maxDigits} digits.
 */
export function parseExact(text: string): Json {
  return checked(
    text,
    (_key, value, { source }) => {
      if (typeof value !== 'number' || source === undefined) return value;
      if (wholeNumber.test(source)) return exactInteger(source);
      if (!Number.isFinite(value)) throw new SyntaxError(`the number ${shortened(source)} is out of range`);
      return value;
    },
    maxJsonDepth,
  );
}

function exactInteger(source: string): bigint {
  if (source.length > (source.startsWith('-') ? maxDigits + 1 : maxDigits))
    throw new SyntaxError(`the number ${shortened(source)} has more than ${maxDigits} digits`);
  return BigInt(source);
}

function shortened(source: string): string {
  return source.length > 24 ? `${source.slice(0, 20)}…` : source;
}

/** Characters of a whole number, told cheaply for the usual ones: 20 for all of 64 bits. */
export function digitsOf(value: bigint): number {
  return BigInt.asIntN(64, value) === value ? 20 : String(value).length;
}

/**
 * Parses JSON text for a writer that uses `JSON.stringify` (the MCP SDK): whole numbers that a double can't
 * hold become raw JSON, so they are written back digit for digit.
 * @param maxDepth default 96: the text is our own, around a value that was admitted with {@link maxJsonDepth}.
 * @throws SyntaxError when the text is not JSON or is nested deeper.
 */
export function parseForWire(text: string, maxDepth = ownJsonDepth): unknown {
  return checked(
    text,
    (_key, value, { source }) => {
      if (typeof value !== 'number' || source === undefined || !wholeNumber.test(source)) return value;
      return Number.isSafeInteger(value) ? value : rawJson(source);
    },
    maxDepth,
  );
}

/** Writes JSON text; bigints are written as their digits. `undefined` members are left out. */
export function stringifyExact(value: Json | undefined, indent?: number): string {
  return JSON.stringify(
    value,
    (_key, member: unknown) => (typeof member === 'bigint' ? rawJson(String(member)) : member),
    indent,
  );
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

function checked<T>(text: string, reviver: Reviver, maxDepth: number): T {
  refuseDeep(text, maxDepth);
  // The third argument (`source`) is in Node 24 but not yet in TypeScript's library.
  return (JSON.parse as (text: string, reviver: Reviver) => T)(text, reviver);
}

/** @throws SyntaxError when the JSON text is nested deeper than `maxDepth`. */
export function refuseDeep(text: string, maxDepth: number): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 92) i++;
      else if (code === 34) inString = false;
    } else if (code === 34) inString = true;
    else if (code === 123 || code === 91) {
      if (++depth > maxDepth) throw new SyntaxError(`nested deeper than ${maxDepth} levels`);
    } else if (code === 125 || code === 93) depth--;
  }
}

/** A number that `JSON.stringify` writes digit for digit. */
export function rawJson(digits: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(digits);
}
