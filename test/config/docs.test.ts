// The reference of the format: its examples load, and it names every field.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadAdapter } from '../../src/config/load.ts';
import { parseYaml } from '../../src/config/yaml.ts';
import { httpFormat } from '../../src/drivers/http/format.ts';
import { formatProblem } from '../../src/errors.ts';

const root = join(import.meta.dirname, '../..');
const text = readFileSync(join(root, 'docs/adapters.md'), 'utf8');
const blocks = [...text.matchAll(/```yaml\n(.*?)```/gs)].map((match) => match[1] ?? '');
const adapters = blocks
  .filter((block) => block.startsWith('version: 1'))
  .map((block) => ({ name: /name: (.*)/.exec(block)?.[1], block }));

it('the adapter of the README loads', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const block = /```yaml\n(.*?)```/s.exec(readme)?.[1] ?? '';
  const { problems, warnings } = loadAdapter(block, { file: 'exports.yaml', formats: [httpFormat] });
  expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
});

describe('docs/adapters.md', () => {
  it('has examples', () => {
    expect(adapters.map(({ name }) => name)).toEqual([
      'reports',
      'renderer',
      'deployer',
      'lists',
      'exports',
      'builds',
      'workflows',
      'files',
      'queries',
      'warehouse',
      'analytics',
      'machines',
      'cluster',
      'builder',
    ]);
  });

  it.each(adapters)('the example $name loads', ({ name, block }) => {
    const { problems, warnings } = loadAdapter(block, { file: `${name}.yaml`, formats: [httpFormat] });
    expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
  });

  it('makes the text of the CSV example from the file', () => {
    const block = adapters.find(({ name }) => name === 'queries')?.block ?? '';
    const { adapter } = loadAdapter(block, { file: 'queries.yaml', formats: [httpFormat] });
    const response = {
      status: 200n,
      headers: {},
      body: [{ id: '1' }, { id: '2' }],
      url: 'https://queries.example.com/',
      truncated: false,
    };
    expect(adapter?.tools[0]?.result.text?.render({ response })).toBe('2 rows, whole true');
  });

  it('has only snippets that are sound YAML', () => {
    for (const block of blocks)
      expect(parseYaml(block, 'snippet.yaml').problems.map(formatProblem)).toEqual([]);
  });

  it('names every field of the format', () => {
    const schema = JSON.parse(readFileSync(join(root, 'config/adapter.schema.json'), 'utf8'));
    const fields = new Set<string>();
    collect(schema, fields);
    // As code, or as a key in a snippet: many fields are words that stand anywhere in the prose.
    const shown = (field: string): boolean =>
      new RegExp(`\`[^\`\\n]*\\b${field}\\b[^\`\\n]*\`|^\\s*(- )?${field}:|[{,] ${field}:`, 'm').test(text);
    const missing = [...fields].filter((field) => !shown(field));
    expect(missing).toEqual([]);
  });

  it('links only to headings that exist', () => {
    const headings = [...text.matchAll(/^#+ (.*)$/gm)].map((match) =>
      (match[1] ?? '')
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    );
    const links = [...text.matchAll(/\]\(#([^)]*)\)/g)].map((match) => match[1]);
    expect(links.filter((link) => !headings.includes(link ?? ''))).toEqual([]);
  });
});

function collect(schema: unknown, fields: Set<string>): void {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'properties' && typeof value === 'object')
      for (const name of Object.keys(value ?? {})) fields.add(name);
    collect(value, fields);
  }
}
