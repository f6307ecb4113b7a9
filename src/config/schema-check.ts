// Checks of the JSON Schemas inside an adapter: they must compile, and questions must be flat.

import { isJsonObject, type Json, type JsonObject } from '../exact-json.ts';
import { suggestion } from './did-you-mean.ts';
import type { Path } from './driver-format.ts';
import { compileSchema } from './json-schema-validator.ts';

export interface SchemaFault {
  /** Relative to the schema. */
  path: Path;
  message: string;
  hint?: string;
  /** Point at the key instead of the value. */
  key?: boolean;
}

/** Larger schemas are a mistake: every client loads them with the tool list. */
const maxSchemaDepth = 40;

/** Arguments, and structured content: JSON Schema 2020-12 with `type: object` at its root. */
export function objectSchemaFaults(schema: JsonObject): SchemaFault[] {
  if (schema.type === undefined) return [{ path: [], message: 'needs type: object' }];
  if (schema.type !== 'object') return [{ path: ['type'], message: 'must be object' }];
  const faults = [...unknownTypes(schema, [], 0), ...undeclaredRequired(schema)];
  return faults.length > 0 ? faults : wholeFaults(schema);
}

const types = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

/** Misspelt types of properties, told at their place and with a suggestion. */
function unknownTypes(schema: Json, path: Path, depth: number): SchemaFault[] {
  if (!isJsonObject(schema) || depth > maxSchemaDepth) return [];
  const { type, properties, items } = schema;
  const faults: SchemaFault[] = [];
  if (typeof type === 'string' && !types.includes(type))
    faults.push({ path: [...path, 'type'], message: `there is no type "${type}"${suggestion(type, types)}` });
  if (isJsonObject(properties))
    for (const [name, property] of Object.entries(properties))
      faults.push(...unknownTypes(property, [...path, 'properties', name], depth + 1));
  return [...faults, ...unknownTypes(items ?? null, [...path, 'items'], depth + 1)];
}

/** A misspelt name under `required` would refuse every call. */
function undeclaredRequired(schema: JsonObject): SchemaFault[] {
  const names = isJsonObject(schema.properties) ? Object.keys(schema.properties) : [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  const open = schema.additionalProperties === true || isJsonObject(schema.additionalProperties);
  const composed = ['allOf', 'anyOf', 'oneOf', '$ref', 'patternProperties', 'if'].some((word) =>
    Object.hasOwn(schema, word),
  );
  if (open || composed) return [];
  return required.flatMap((name, index): SchemaFault[] => {
    if (typeof name !== 'string' || names.includes(name)) return [];
    return [
      { path: ['required', index], message: `there is no property "${name}"${suggestion(name, names)}` },
    ];
  });
}

/** Faults of a schema whose parts look right by themselves. */
function wholeFaults(schema: JsonObject): SchemaFault[] {
  const faults = compileFaults(schema);
  return faults.length > 0 ? faults : unfitDefaults(schema, schema, []);
}

/** Defaults that the property itself would refuse. */
function unfitDefaults(schema: JsonObject, root: JsonObject, path: Path): SchemaFault[] {
  if (!isJsonObject(schema.properties)) return [];
  return Object.entries(schema.properties).flatMap(([name, property]): SchemaFault[] => {
    if (!isJsonObject(property)) return [];
    const at = [...path, 'properties', name];
    const inner = unfitDefaults(property, root, at);
    const why = property.default === undefined ? undefined : misfit(property, property.default, root);
    if (why === undefined) return inner;
    return [
      { path: [...at, 'default'], message: `does not fit the property's own schema: ${why}` },
      ...inner,
    ];
  });
}

/** Why `value` does not fit; undefined when it does, or when the property can't be looked at by itself. */
function misfit(
  property: JsonObject,
  value: Json,
  { $defs = {}, definitions = {} }: JsonObject,
): string | undefined {
  const compiled = compileSchema({ $defs, definitions, type: 'object', properties: { value: property } });
  const why = 'fault' in compiled ? undefined : compiled.validate({ value });
  return why?.replace(/^data\/value ?/, '').slice(0, 200);
}

function compileFaults(schema: JsonObject): SchemaFault[] {
  if (depthOf(schema) > maxSchemaDepth) return [{ path: [], message: 'the schema is nested too deeply' }];
  const compiled = compileSchema(schema);
  if (!('fault' in compiled)) return [];
  const { fault } = compiled;
  return [{ path: placeIn(schema, fault), message: `is no JSON Schema 2020-12: ${fault.slice(0, 300)}` }];
}

/** `schema is invalid: data/properties/a/type must be …` names a place. */
function placeIn(schema: JsonObject, text: string): Path {
  const pointer = /data((?:\/[^\s,]+)+)/.exec(text)?.[1];
  if (pointer === undefined) return [];
  const path: (string | number)[] = [];
  let current: Json | undefined = schema;
  for (const part of pointer.slice(1).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(current)) {
      path.push(Number(key));
      current = current[Number(key)];
    } else if (isJsonObject(current) && Object.hasOwn(current, key)) {
      path.push(key);
      current = current[key];
    } else break;
  }
  return path;
}

function depthOf(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

const fieldKeywords: { [type: string]: readonly string[] } = {
  string: ['enum', 'enumNames', 'oneOf', 'const', 'minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  boolean: [],
};
const everyField = ['type', 'title', 'description', 'default'];
const stringFormats = ['email', 'uri', 'date', 'date-time'];

/** A question's schema: what MCP clients can show as a form, one level of plain fields. */
export function questionSchemaFaults(schema: JsonObject): SchemaFault[] {
  const faults: SchemaFault[] = [];
  if (schema.type !== 'object')
    faults.push({ path: schema.type === undefined ? [] : ['type'], message: 'needs type: object' });
  const known = ['type', 'properties', 'required', 'title', 'description', '$schema'];
  for (const key of Object.keys(schema))
    if (!known.includes(key))
      faults.push({
        path: [key],
        key: true,
        message: `a question's schema can't have "${key}"${suggestion(key, known)}`,
      });
  if (!isJsonObject(schema.properties)) faults.push({ path: [], message: 'needs properties' });
  else
    for (const [name, field] of Object.entries(schema.properties))
      faults.push(...fieldFaults(field, ['properties', name]));
  return faults.length > 0 ? faults : [...undeclaredRequired(schema), ...wholeFaults(schema)];
}

function fieldFaults(field: Json, path: Path): SchemaFault[] {
  if (!isJsonObject(field)) return [{ path, message: 'must be a map with a type' }];
  const type = field.type ?? (Array.isArray(field.enum) ? 'string' : undefined);
  if (typeof type !== 'string' || !Object.hasOwn(fieldKeywords, type)) {
    const message = "a question's field must be a string, number, integer, boolean or enum";
    return [
      {
        path: field.type === undefined ? path : [...path, 'type'],
        message,
        hint: 'questions are flat: no objects, no lists',
      },
    ];
  }
  const known = [...everyField, ...(fieldKeywords[type] ?? [])];
  const faults = Object.keys(field).flatMap((key): SchemaFault[] =>
    known.includes(key)
      ? []
      : [
          {
            path: [...path, key],
            key: true,
            message: `a ${type} field can't have "${key}"${suggestion(key, known)}`,
          },
        ],
  );
  if (Array.isArray(field.enum) && !field.enum.every((item) => typeof item === 'string'))
    faults.push({ path: [...path, 'enum'], message: 'the choices must be text', hint: 'quote them' });
  if (typeof field.format === 'string' && !stringFormats.includes(field.format))
    faults.push({ path: [...path, 'format'], message: `must be one of ${stringFormats.join(', ')}` });
  return faults;
}
