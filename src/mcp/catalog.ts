// The tools this server offers, with what the protocol edge needs of each: name, schemas, validators, upstream.

import type { Adapter, Tool } from '../config/adapter.ts';
import type { Upstream } from '../drivers/driver.ts';
import { stringifyExact } from '../exact-json.ts';
import { type SchemaCheck, schemaCheck } from './schema-check.ts';

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
