// The schemas for editors: up to date, and of one mind with the loader.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { editorSchemas } from '../../src/config/json-schema.ts';
import { httpFormat } from '../../src/drivers/http/format.ts';

const config = join(import.meta.dirname, '../../config');
const schemas = editorSchemas([httpFormat]);

it.each(schemas)('$file is what `npm run schema` writes', ({ file, text }) => {
  expect(readFileSync(join(config, file), 'utf8')).toBe(text);
});

describe('the adapter schema', () => {
  const validate = new AjvJsonSchemaValidator().getValidator(JSON.parse(schemas[0]?.text ?? ''));
  const good = join(import.meta.dirname, 'good');

  it.each(readdirSync(good))('accepts %s', (name) => {
    expect(validate(parse(readFileSync(join(good, name), 'utf8')))).toMatchObject({ valid: true });
  });

  it('refuses unknown keys at every level', () => {
    const text = readFileSync(join(good, 'jenkins.yaml'), 'utf8');
    for (const [from, to] of [
      ['upstream:', 'upstreem:'],
      ['    create:', '    creat:'],
      ['      expect:', '      expects:'],
      ['baseUrl:', 'baseURL:'],
    ] as const) {
      expect(text).toContain(from);
      expect(validate(parse(text.replace(from, to))), to).toMatchObject({ valid: false });
    }
  });
});

it.each(schemas)('every field of $file is explained', ({ text }) => {
  const root = JSON.parse(text) as SchemaNode;
  expect(unexplained(root, root, '')).toEqual([]);
});

interface SchemaNode {
  $ref?: string;
  description?: string;
  properties?: { [name: string]: SchemaNode };
  [keyword: string]: unknown;
}

/** Paths of the fields, at any depth, that neither they nor the definition they refer to describe. */
function unexplained(node: SchemaNode, root: SchemaNode, path: string): string[] {
  const own = Object.entries(node.properties ?? {})
    .filter(
      ([, field]) => field.description === undefined && definition(field, root)?.description === undefined,
    )
    .map(([name]) => `${path}/${name}`);
  const inner = Object.entries(node).flatMap(([name, member]) =>
    typeof member === 'object' && member !== null
      ? unexplained(member as SchemaNode, root, `${path}/${name}`)
      : [],
  );
  return [...own, ...inner];
}

function definition({ $ref }: SchemaNode, root: SchemaNode): SchemaNode | undefined {
  const defs = root.$defs as { [name: string]: SchemaNode };
  return $ref === undefined ? undefined : defs[$ref.replace('#/$defs/', '')];
}

it('the settings schema accepts the example', () => {
  const validate = new AjvJsonSchemaValidator().getValidator(JSON.parse(schemas[1]?.text ?? ''));
  expect(validate(parse(readFileSync(join(config, 'taskferry.yaml'), 'utf8')))).toMatchObject({
    valid: true,
  });
  expect(validate({ version: 1, port: 1 })).toMatchObject({ valid: false });
});
