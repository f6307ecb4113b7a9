// Defaults of a tool's arguments.

import { isJsonObject, type JsonObject } from '../exact-json.ts';

/**
 * Fills in the `default` of each top-level property of `schema` that `args` lacks; returns a new object and
 * changes neither argument. Numbers stay as they are in the schema: call it before the arguments are validated.
 */
export function applyDefaults(schema: JsonObject, args: JsonObject): JsonObject {
  const result: JsonObject = { ...args };
  if (!isJsonObject(schema.properties)) return result;
  for (const [name, property] of Object.entries(schema.properties)) {
    if (Object.hasOwn(result, name) || !isJsonObject(property) || property.default === undefined) continue;
    result[name] = structuredClone(property.default);
  }
  return result;
}
