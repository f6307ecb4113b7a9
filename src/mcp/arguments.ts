// From the arguments on the wire to exact values: defaults, validation, whole numbers without loss.

import { applyDefaults } from '../config/defaults.ts';
import type { Json, JsonObject } from '../exact-json.ts';
import type { ServedTool } from './catalog.ts';

export type ReadArguments = { kind: 'valid'; args: JsonObject } | { kind: 'invalid'; message: string };

/** Validates `raw` against the tool's input schema; the message names every field that does not fit. */
export function readArguments(
  served: ServedTool,
  raw: { [name: string]: unknown } | undefined,
): ReadArguments {
  const given = (raw ?? {}) as JsonObject;
  const lossy = findUnsafe(given, []);
  if (lossy !== undefined) {
    return {
      kind: 'invalid',
      message: `Invalid arguments for ${served.name}: ${lossy} is a whole number beyond 2^53, which JSON clients change. Declare it as a string in the tool's input and pass it as one.`,
    };
  }
  const args = applyDefaults(served.tool.input, given);
  const problem = served.checkInput(args);
  if (problem !== undefined) {
    return { kind: 'invalid', message: `Invalid arguments for ${served.name}: ${problem}` };
  }
  return { kind: 'valid', args: exactIntegers(served.tool.input, args) as JsonObject };
}

/** Path of the first number that may have lost digits on its way. */
function findUnsafe(value: Json, path: readonly string[]): string | undefined {
  if (typeof value === 'number') {
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? path.join('.') : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const found = findUnsafe(member, [...path, name]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Numbers that the schema types as `integer` become bigint, the expression language's int. */
function exactIntegers(schema: Json | undefined, value: Json): Json {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return value;
  if (typeof value === 'number') {
    return isInteger(schema) && Number.isSafeInteger(value) ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return value.map((member) => exactIntegers(schema.items, member));
  if (typeof value !== 'object' || value === null) return value;
  const properties = (schema.properties ?? {}) as JsonObject;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      exactIntegers(Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties, member),
    ]),
  );
}

function isInteger(schema: JsonObject): boolean {
  return schema.type === 'integer' || (Array.isArray(schema.type) && schema.type.includes('integer'));
}
