// From the arguments on the wire to exact values: defaults, validation, whole numbers without loss.

import { applyDefaults } from '../config/defaults.ts';
import { isJsonObject, type Json, type JsonObject, maxJsonDepth } from '../exact-json.ts';
import { sizeOf } from './bounds.ts';
import type { ServedTool } from './catalog.ts';

export type ReadArguments = { kind: 'valid'; args: JsonObject } | { kind: 'invalid'; message: string };

/** Validates `raw` against the tool's input schema; the message names every field that does not fit. */
export function readArguments(
  served: ServedTool,
  raw: { [name: string]: unknown } | undefined,
): ReadArguments {
  const given = (raw ?? {}) as JsonObject;
  const args = applyDefaults(served.tool.input, given);
  const problem =
    tooLarge(served, given) ?? unsafeNumber(given) ?? unknownNames(served, given) ?? served.checkInput(args);
  if (problem !== undefined) {
    return { kind: 'invalid', message: `Invalid arguments for ${served.name}: ${problem}` };
  }
  return { kind: 'valid', args: exactIntegers(served.tool.input, args) as JsonObject };
}

/** Most values in the arguments of one call: they are copied, checked and stored with the task. */
const maxValues = 50_000;
/** The same for a tool whose schema says `uniqueItems`, which compares every item with every other. */
const maxUniqueValues = 2_000;

function tooLarge(served: ServedTool, args: JsonObject): string | undefined {
  const limit = { depth: maxJsonDepth, values: served.comparesItems ? maxUniqueValues : maxValues };
  const { depth, values } = sizeOf(args, limit);
  if (depth > limit.depth) return `they are nested deeper than ${limit.depth} levels`;
  return values > limit.values ? `they hold more than ${limit.values} values` : undefined;
}

function unsafeNumber(args: JsonObject): string | undefined {
  const path = findUnsafe(args, []);
  return path && `${path} ${unsafeFault} Declare it as a string in the tool's input and pass it as one.`;
}

/** Said by name, as the validator does not; only where the schema closes its properties. */
function unknownNames({ tool }: ServedTool, args: JsonObject): string | undefined {
  if (tool.input.additionalProperties !== false || tool.input.patternProperties !== undefined)
    return undefined;
  const known = Object.keys((tool.input.properties ?? {}) as JsonObject);
  const unknown = Object.keys(args).filter((name) => !known.includes(name));
  if (unknown.length === 0) return undefined;
  const names = unknown.slice(0, 10).map((name) => JSON.stringify(name.slice(0, 64)));
  const offered = known.length === 0 ? 'it takes none' : `it takes ${known.join(', ')}`;
  return `there is no argument ${names.join(', ')} (${offered})`;
}

/** What is wrong with an unsafe number, to be read after its name. */
export const unsafeFault = 'is a whole number beyond 2^53, which JSON clients change, or no finite number.';

/** A number that may have lost digits on its way, or is none. */
export function isUnsafe(value: Json | undefined): boolean {
  return (
    typeof value === 'number' &&
    (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value)))
  );
}

/** Path of the first number that may have lost digits on its way. */
function findUnsafe(value: Json, path: readonly string[]): string | undefined {
  if (isUnsafe(value)) return path.join('.');
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const found = findUnsafe(member, [...path, name]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Numbers that the schema types as `integer` become bigint, the expression language's int. */
export function exactIntegers(schema: Json | undefined, value: Json): Json {
  if (!isJsonObject(schema)) return value;
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
