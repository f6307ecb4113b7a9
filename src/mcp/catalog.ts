// The tools this server offers, with what the protocol edge needs of each: name, schemas, validators, upstream.

import type { Adapter, Tool } from '../config/adapter.ts';
import { compileSchemaCheck, type SchemaCheck } from '../config/json-schema-validator.ts';
import type { Upstream } from '../drivers/driver.ts';
import { type JsonObject, stringifyExact } from '../exact-json.ts';

export interface ServedTool {
  /** Prefix and key: the name on the wire. */
  name: string;
  /** The name its adapter is served under. */
  servedAs: string;
  adapter: Adapter;
  tool: Tool;
  upstream: Upstream;
  checkInput: SchemaCheck;
  /** The input schema has `uniqueItems` somewhere. */
  comparesItems: boolean;
}

export interface Catalog {
  /** Adapters as configured, tools as in the file. */
  tools: readonly ServedTool[];
  byName(name: string): ServedTool | undefined;
}

export function createCatalog(tools: readonly ServedTool[]): Catalog {
  const index = new Map(tools.map((tool) => [tool.name, tool]));
  return { tools, byName: (name) => index.get(name) };
}

export function serveTool(
  name: string,
  servedAs: string,
  adapter: Adapter,
  tool: Tool,
  upstream: Upstream,
): ServedTool {
  return {
    name,
    servedAs,
    adapter,
    tool,
    upstream,
    checkInput: schemaCheck(tool.input),
    comparesItems: /"uniqueItems":\s*true/.test(stringifyExact(tool.input)),
  };
}

const checks = new WeakMap<JsonObject, SchemaCheck>();

/** Compiled once for each schema. */
export function schemaCheck(schema: JsonObject): SchemaCheck {
  const known = checks.get(schema);
  if (known) return known;
  const compiled = compileSchemaCheck(schema);
  const check: SchemaCheck = (value) => {
    const misfit = compiled(value);
    return misfit === undefined ? undefined : inWords(misfit);
  };
  checks.set(schema, check);
  return check;
}

/** Longest description of what does not fit, in characters; the first problems are the ones to mend. */
const longestProblem = 2_000;

/** The validator's `data/a/0 must be string` as `a.0 must be string`. */
function inWords(message: string): string {
  const start = message.slice(0, longestProblem);
  const plain = start
    .replaceAll(/\bdata((?:\/[^\s,/]+)+)/g, (_all, path: string) => path.slice(1).replaceAll('/', '.'))
    .replaceAll(/\bdata must /g, 'the value must ');
  return message.length > longestProblem ? `${plain} …` : plain;
}
