// The import directions of docs: each folder may only look where this table lets it.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const src = join(import.meta.dirname, '../src');

/** Files everything may import. */
const leaves = [
  'errors.ts',
  'clock.ts',
  'steady-clock.ts',
  'exact-json.ts',
  'cap-text.ts',
  'duration.ts',
  'observability/log.ts',
];

/** What the files of a folder may import beside their own folder and the leaves: folders or single files. */
const allowed: { [folder: string]: readonly string[] } = {
  config: [],
  drivers: ['config', 'observability/metrics.ts'],
  stores: ['tasks/task.ts'],
  tasks: ['stores/store.ts', 'drivers/driver.ts', 'observability/metrics.ts'],
  scheduler: ['tasks', 'stores/store.ts', 'config'],
  mcp: ['tasks', 'stores/store.ts', 'drivers/driver.ts', 'config', 'observability/metrics.ts'],
  observability: [],
};
/** Files of src itself: they put the parts together. */
const roots = ['cli.ts', 'server.ts', 'index.ts', 'version.ts'];

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
}

/** Relative imports of a file, static, dynamic and type-only, as paths below src. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, target = '']) =>
    relative(src, resolve(dirname(file), target)),
  );
}

const files = filesIn(src).map((file) => ({ name: relative(src, file), file }));

describe.each(Object.keys(allowed))('src/%s', (folder) => {
  it('imports only what it may', () => {
    const permitted = [...(allowed[folder] ?? []), folder, ...leaves];
    const own = files.filter(({ name }) => name.startsWith(`${folder}/`));
    expect(own.length).toBeGreaterThan(0);
    const wrong = own.flatMap(({ name, file }) =>
      importsOf(file)
        .filter((target) => !permitted.some((place) => target === place || target.startsWith(`${place}/`)))
        .map((target) => `${name} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });
});

it('has a rule for every file', () => {
  const unknown = files.filter(
    ({ name }) =>
      !roots.includes(name) &&
      !leaves.includes(name) &&
      !Object.keys(allowed).some((folder) => name.startsWith(`${folder}/`)),
  );
  expect(unknown.map(({ name }) => name)).toEqual([]);
});

it('lets the leaves import nothing of ours but each other', () => {
  for (const leaf of leaves) {
    for (const target of importsOf(join(src, leaf))) expect(leaves).toContain(target);
  }
});

it('names concrete stores and drivers in server.ts alone', () => {
  const concrete = /^(stores\/(?!store\.ts$)|drivers\/[^/]+\/)/;
  const users = files
    .filter(({ name }) => !name.startsWith('stores/') && !name.startsWith('drivers/'))
    .filter(({ file }) => importsOf(file).some((target) => concrete.test(target)))
    .map(({ name }) => name);
  expect(users).toEqual(['server.ts']);
});

it('imports no file in a circle', () => {
  const graph = new Map(
    files.map(({ name, file }) => {
      const text = readFileSync(file, 'utf8');
      const runtime = [...text.matchAll(/^(?:import|export) (?!type\b)[^;]*?from '(\.[^']+)'/gm)];
      return [name, runtime.map(([, target = '']) => relative(src, resolve(dirname(file), target)))];
    }),
  );
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (name: string, path: readonly string[]): void => {
    if (path.includes(name)) circles.push([...path.slice(path.indexOf(name)), name].join(' -> '));
    else if (!done.has(name)) {
      for (const next of graph.get(name) ?? []) visit(next, [...path, name]);
      done.add(name);
    }
  };
  for (const { name } of files) visit(name, []);
  expect(circles).toEqual([]);
});

it('opens every file of src with a comment that says what it is for', () => {
  const silent = files
    .filter(({ file }) => !/^(#!.*\n)?\/\/ \S/.test(readFileSync(file, 'utf8')))
    .map(({ name }) => name);
  expect(silent).toEqual([]);
});
