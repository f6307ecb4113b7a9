// The tools this server offers, with what the protocol edge needs of each: name, schemas, validators, upstream.

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import type { Adapter, Tool } from '../config/adapter.ts';
import type { Upstream } from '../drivers/driver.ts';
import { type Json, type JsonObject, stringifyExact } from '../exact-json.ts';
import type { CheckOutput } from './render.ts';

export interface ServedTool {
  /** Prefix and key: the name on the wire. */
  name: string;
  adapter: Adapter;
  tool: Tool;
  upstream: Upstream;
  checkInput: (args: unknown) => string | undefined;
  checkOutput: CheckOutput | undefined;
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

export function serveTool(name: string, adapter: Adapter, tool: Tool, upstream: Upstream): ServedTool {
  const { output } = tool;
  const checkOutput = output && schemaCheck(output);
  return {
    name,
    adapter,
    tool,
    upstream,
    checkInput: schemaCheck(tool.input),
    checkOutput: checkOutput && ((structured: Json) => checkOutput(JSON.parse(stringifyExact(structured)))),
  };
}

/** One validator per schema: two schemas with the same `$id` would share the first one's otherwise. */
export function schemaCheck(schema: JsonObject): (value: unknown) => string | undefined {
  const validate = new AjvJsonSchemaValidator().getValidator(JSON.parse(stringifyExact(schema)));
  return (value) => {
    const result = validate(value);
    return result.valid ? undefined : result.errorMessage;
  };
}
