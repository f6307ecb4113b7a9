// What an expression gave, as exact JSON: CEL's own types turned into plain ones, and a bound on the size.

import { Optional } from '@marcbachmann/cel-js';
import { digitsOf, type Json, type JsonObject, maxJsonDepth } from '../exact-json.ts';

/** The value would be larger than allowed. */
export class ResultTooLarge extends Error {}

/** The value has no JSON form: a number that is not finite, bytes, a type. */
export class UnusableValue extends Error {}

/**
 * Turns what the engine gave into exact JSON. Whole numbers stay bigint, times become ISO 8601 text, empty
 * optionals `undefined` (left out inside lists and maps).
 * @throws ResultTooLarge above `maxBytes` of JSON text (estimated). @throws UnusableValue
 */
export function normalise(value: unknown, maxBytes: number): Json | undefined {
  const budget = { left: maxBytes, max: maxBytes };
  return plain(value, budget, 0);
}

interface Budget {
  left: number;
  max: number;
}

function plain(value: unknown, budget: Budget, depth: number): Json | undefined {
  if (depth > maxJsonDepth) throw new UnusableValue(`nested deeper than ${maxJsonDepth} levels`);
  if (value === undefined) return undefined;
  if (value === null || typeof value === 'boolean') return spent(value, 5, budget);
  if (typeof value === 'string') return spent(value, textBytes(value, budget), budget);
  if (typeof value === 'bigint') return spent(value, digitsOf(value), budget);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new UnusableValue('the number is not finite');
    return spent(value, 20, budget);
  }
  if (value instanceof Optional) return value.hasValue() ? plain(value.value(), budget, depth) : undefined;
  if (Array.isArray(value)) return list(value, budget, depth);
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new UnusableValue('the time is not valid');
    return spent(value.toISOString(), 26, budget);
  }
  if (value instanceof Map) return map(value.entries(), budget, depth);
  if (typeof value === 'object') return object(value, budget, depth);
  throw new UnusableValue(`a ${typeof value} has no JSON form`);
}

function object(value: object, budget: Budget, depth: number): Json {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return map(Object.entries(value), budget, depth);
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  // The engine's duration and unsigned integer are classes that it does not export.
  if (tag === 'google.protobuf.Duration') return spent(String(value), 24, budget);
  const number: unknown = value.valueOf();
  if (typeof number === 'bigint') return spent(number, 20, budget);
  throw new UnusableValue(
    value instanceof Uint8Array ? 'bytes have no JSON form' : 'the value has no JSON form',
  );
}

function list(items: readonly unknown[], budget: Budget, depth: number): Json[] {
  spend(2, budget);
  const result: Json[] = [];
  for (const item of items) {
    const member = plain(item, budget, depth + 1);
    if (member !== undefined) result.push(member);
    spend(1, budget);
  }
  return result;
}

function map(entries: Iterable<[unknown, unknown]>, budget: Budget, depth: number): JsonObject {
  spend(2, budget);
  const result: JsonObject = {};
  for (const [key, item] of entries) {
    const name = String(key);
    spend(textBytes(name, budget) + 2, budget);
    const member = plain(item, budget, depth + 1);
    if (member === undefined) continue;
    if (name === '__proto__')
      Object.defineProperty(result, name, {
        value: member,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    else result[name] = member;
  }
  return result;
}

/** Counts only as far as it matters: joined text may be far longer than what is left. */
function textBytes(text: string, budget: Budget): number {
  return text.length > budget.left ? text.length : Buffer.byteLength(text) + 2;
}

function spent<T>(value: T, bytes: number, budget: Budget): T {
  spend(bytes, budget);
  return value;
}

function spend(bytes: number, budget: Budget): void {
  budget.left -= bytes;
  if (budget.left < 0) throw new ResultTooLarge(`the result is larger than ${budget.max} bytes`);
}
