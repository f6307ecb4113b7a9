// Defaults of a tool's arguments.

import type { JsonObject } from '../exact-json.ts';
import { isObject } from './schema-names.ts';

/**
 * Fills in the `default` of each top-level property of `schema` that `args` lacks; returns a new object and
 * changes neither argument. Numbers stay as they are in the schema: call it before the arguments are validated.
 */
export function applyDefaults(schema: JsonObject, args: JsonObject): JsonObject {
  const result: JsonObject = { ...args };
  if (!isObject(schema.properties)) return result;
  for (const [name, property] of Object.entries(schema.properties)) {
    if (Object.hasOwn(result, name) || !isObject(property) || property.default === undefined) continue;
    result[name] = structuredClone(property.default);
  }
  return result;
}
