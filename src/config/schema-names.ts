// From a JSON Schema to the names and CEL types that expressions may read: args, confirm answers, ask answers.

import { isJsonObject, type Json, type JsonObject } from '../exact-json.ts';
import type { Member, Shape } from './expression-names.ts';

interface Options {
  /** Dotted name of the value, for hints: `args`. */
  path: string;
  /** How to make a member exist. */
  declare: string;
  /** Whether `default` makes a property certain: top-level defaults of arguments are filled in. */
  defaults: boolean;
}

/** Keywords that may add or require properties in ways that are not followed here. */
const combinators = [
  'anyOf',
  'oneOf',
  'if',
  'then',
  'else',
  'dependentSchemas',
  'dependentRequired',
  '$ref',
  '$dynamicRef',
];

/** Members of an object schema: types where they are clear, and whether each is sure to be there. */
export function namesOfSchema(schema: JsonObject, options: Options): Shape {
  const merged = mergeAll(schema, schema, 0);
  if (merged === undefined) return { kind: 'any' };
  const members: { [name: string]: Member } = {};
  for (const [name, property] of Object.entries(merged.properties)) {
    const path = `${options.path}.${name}`;
    const certain =
      merged.required.has(name) ||
      (options.defaults && isJsonObject(property) && Object.hasOwn(property, 'default'));
    members[name] = {
      type: celType(property),
      certain,
      ...memberDetails(property, path, certain || merged.loose, options),
    };
    if (merged.loose) members[name].certain = true;
  }
  return { kind: 'members', members, open: merged.open, declare: options.declare };
}

function memberDetails(
  property: Json,
  path: string,
  certain: boolean,
  options: Options,
): { fix?: string; shape?: Shape } {
  const details: { fix?: string; shape?: Shape } = {};
  if (!certain) {
    const cut = path.lastIndexOf('.');
    const optional = `${path.slice(0, cut)}.?${path.slice(cut + 1)}`;
    const others = options.defaults
      ? ', or give it a default, or list it under required'
      : ', or list it under required';
    details.fix = `read it as ${optional}.orValue(…) or after has(${path})${others}`;
  }
  if (isJsonObject(property) && isJsonObject(property.properties))
    details.shape = namesOfSchema(property, {
      ...options,
      path,
      declare: `declare it in the schema of ${path}`,
      defaults: false,
    });
  return details;
}

interface Merged {
  properties: JsonObject;
  required: Set<string>;
  open: boolean;
  /** Combinators decide what is required: then nothing is called uncertain. */
  loose: boolean;
}

/** Properties of the schema and of its `allOf` parts and local references; undefined when they can't be known. */
function mergeAll(schema: JsonObject, root: JsonObject, depth: number): Merged | undefined {
  if (depth > 8) return undefined;
  const merged: Merged = {
    properties: { ...(isJsonObject(schema.properties) ? schema.properties : {}) },
    required: new Set(Array.isArray(schema.required) ? schema.required.map(String) : []),
    open: isOpen(schema),
    loose: combinators.some((keyword) => Object.hasOwn(schema, keyword)),
  };
  const parts: Json[] = [];
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    const list = schema[keyword];
    if (Array.isArray(list)) parts.push(...list);
  }
  for (const keyword of ['then', 'else', 'if'] as const)
    if (isJsonObject(schema[keyword])) parts.push(schema[keyword]);
  if (isJsonObject(schema.dependentSchemas)) parts.push(...Object.values(schema.dependentSchemas));
  if (typeof schema.$ref === 'string') {
    const target = localReference(schema.$ref, root);
    if (target === undefined) return undefined;
    parts.push(target);
  }
  if (Object.hasOwn(schema, '$dynamicRef')) return undefined;
  const all = Array.isArray(schema.allOf) ? schema.allOf : [];
  for (const part of parts) {
    if (!isJsonObject(part)) continue;
    const inner = mergeAll(part, root, depth + 1);
    if (inner === undefined) return undefined;
    merged.properties = { ...inner.properties, ...merged.properties };
    merged.open ||= inner.open;
    merged.loose ||= inner.loose;
    if (all.includes(part)) for (const name of inner.required) merged.required.add(name);
  }
  return merged;
}

/** Undeclared members only count as known when the schema says so itself. */
function isOpen(schema: JsonObject): boolean {
  const extra = schema.additionalProperties;
  return extra === true || isJsonObject(extra) || isJsonObject(schema.patternProperties);
}

function localReference(reference: string, root: JsonObject): JsonObject | undefined {
  if (!reference.startsWith('#/')) return undefined;
  let current: Json | undefined = root;
  for (const part of reference.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    current = isJsonObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return isJsonObject(current) ? current : undefined;
}

/** The CEL type of values that fit a schema; `dyn` when they can be of several. */
function celType(schema: Json | undefined): string {
  if (!isJsonObject(schema)) return 'dyn';
  const { type } = schema;
  if (type === undefined) return typeOfValues(schema.const !== undefined ? [schema.const] : schema.enum);
  switch (type) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'integer':
      return 'int';
    case 'array': {
      const item = celType(schema.items);
      return item === 'dyn' ? 'list' : `list<${item}>`;
    }
    case 'object': {
      const item = isJsonObject(schema.properties) ? 'dyn' : celType(schema.additionalProperties);
      return `map<string, ${item}>`;
    }
    default:
      // A `number` may arrive as a whole number or not, which are two types in CEL.
      return 'dyn';
  }
}

function typeOfValues(values: Json | undefined): string {
  if (!Array.isArray(values) || values.length === 0) return 'dyn';
  if (values.every((value) => typeof value === 'string')) return 'string';
  if (values.every((value) => typeof value === 'boolean')) return 'bool';
  return 'dyn';
}
