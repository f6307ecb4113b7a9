// From the list of adapters to what is served.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadRegistry } from '../../src/config/registry.ts';
import { loadSettings } from '../../src/config/settings.ts';
import { httpFormat } from '../../src/drivers/http/format.ts';
import { formatProblem } from '../../src/errors.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'taskferry-'));
  mkdirSync(join(folder, 'shipped'));
  mkdirSync(join(folder, 'many'));
  adapter('shipped/ci.yaml', 'ci', ['ci_list', 'ci_read']);
  adapter('many/one.yaml', 'one', ['one_list']);
  adapter('many/two.yml', 'two', ['two_list']);
  writeFileSync(join(folder, 'many/one.replay.yaml'), 'not: an adapter\n');
  writeFileSync(join(folder, 'many/readme.md'), '# no adapter\n');
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function adapter(file: string, name: string, tools: readonly string[]): void {
  const text = `version: 1
name: ${name}
secrets: [TOKEN]
upstream: { driver: http, baseUrl: "https://ci.example.com", auth: { bearer: "\${{ secrets.TOKEN }}" } }
tools:
${tools.map((tool) => `  ${tool}: { description: Reads., call: { request: GET / } }\n`).join('')}`;
  writeFileSync(join(folder, file), text);
}

function load(adapters: string, environment: { [name: string]: string } = { TOKEN: 'secret-token' }) {
  writeFileSync(join(folder, 'taskferry.yaml'), `version: 1\nadapters: ${adapters}\n`);
  const { settings, problems } = loadSettings({
    flags: { config: 'taskferry.yaml' },
    environment: {},
    cwd: folder,
  });
  expect(problems.map(formatProblem)).toEqual([]);
  return loadRegistry(settings?.adapters ?? [], {
    formats: [httpFormat],
    environment,
    shipped: join(folder, 'shipped'),
  });
}

function served(adapters: string, environment?: { [name: string]: string }) {
  const { registry, problems } = load(adapters, environment);
  expect(problems.map(formatProblem)).toEqual([]);
  return registry?.adapters.map(({ name, tools }) => [name, tools.map((tool) => tool.name)]);
}

function faults(adapters: string, environment?: { [name: string]: string }): string[] {
  const { registry, problems } = load(adapters, environment);
  expect(registry).toBeUndefined();
  return problems.map((problem) => formatProblem(problem).replaceAll(`${folder}/`, ''));
}

describe('what is listed', () => {
  it('is a shipped adapter, a file, or a folder without its recorded replies', () => {
    expect(served('[ci, ./many]')).toEqual([
      ['ci', ['ci_list', 'ci_read']],
      ['one', ['one_list']],
      ['two', ['two_list']],
    ]);
    expect(served('[./many/two.yml]')).toEqual([['two', ['two_list']]]);
  });

  it('may be served twice under other names, with other variables and only some tools', () => {
    const list = `
  - ci
  - { use: ci, as: ci-staging, prefix: staging_, env: { TOKEN: STAGING_TOKEN }, tools: [ci_list] }`;
    const environment = { TOKEN: 'live-token', STAGING_TOKEN: 'staging-token' };
    expect(served(list, environment)).toEqual([
      ['ci', ['ci_list', 'ci_read']],
      ['ci-staging', ['staging_ci_list']],
    ]);
    const values = load(list, environment).registry?.adapters.map(
      ({ variables }) => variables.values().secrets.TOKEN,
    );
    expect(values).toEqual(['live-token', 'staging-token']);
  });

  it('may be nothing, with a warning', () => {
    const { registry, warnings } = load('[]');
    expect(registry?.adapters).toEqual([]);
    expect(warnings).toMatchObject([{ message: 'nothing is served: no adapter is listed' }]);
  });
});

describe('faults', () => {
  it('of the list are told at its lines', () => {
    expect(
      faults(`
  - cii
  - ./nowhere.yaml
  - { use: ci, tools: [ci_lst], env: { TOKN: X } }
  - { use: ./many, as: both }`),
    ).toEqual([
      'taskferry.yaml:3:5 adapters[0].use: there is no shipped adapter "cii", did you mean "ci"? (shipped: ci; a file of your own is written as a path: ./cii.yaml)',
      'taskferry.yaml:4:5 adapters[1].use: nowhere.yaml: the file does not exist',
      'taskferry.yaml:5:46 adapters[2].env.TOKN: ci has no variable TOKN, did you mean "TOKEN"?',
      'taskferry.yaml:5:24 adapters[2].tools[0]: ci has no tool "ci_lst", did you mean "ci_list"?',
      "taskferry.yaml:6:24 adapters[3].as: ./many holds 2 adapters, which can't all have one name",
    ]);
  });

  it('two tools of one name are told with both places', () => {
    adapter('many/two.yml', 'two', ['two_list', 'one_list']);
    expect(faults('[./many]')).toEqual([
      'many/two.yml:7:3 tools.one_list: there are two tools of the name one_list: here and at many/one.yaml:6 (give one of the adapters a prefix in the settings)',
    ]);
  });

  it('two adapters of one name are told', () => {
    expect(faults('[ci, { use: ci, prefix: b_ }]')).toEqual([
      'taskferry.yaml:2:16 adapters[1]: shipped/ci.yaml and shipped/ci.yaml are both served as "ci" (give one of them another name: {use: …, as: …})',
    ]);
  });

  it('names that a prefix makes too long or takes from taskferry are told', () => {
    adapter('many/one.yaml', 'one', ['status']);
    expect(faults(`[{ use: ./many/one.yaml, prefix: task_ }]`)).toEqual([
      'taskferry.yaml:2:44 adapters[0].prefix: with its prefix, the name task_status is taken by taskferry itself',
    ]);
    expect(faults(`[{ use: ci, prefix: ${'p'.repeat(60)} }]`)[0]).toContain('more than 64 characters');
  });

  it('a variable that is not set is told at the line of the adapter, for every adapter', () => {
    expect(faults('[ci, ./many/one.yaml]', {})).toEqual([
      'shipped/ci.yaml:3:11 secrets: the secret TOKEN of ci is not set (set TOKEN, or TOKEN_FILE to the path of a file that holds it)',
      'many/one.yaml:3:11 secrets: the secret TOKEN of one is not set (set TOKEN, or TOKEN_FILE to the path of a file that holds it)',
    ]);
  });

  it('of an adapter that is served under two names are told once', () => {
    writeFileSync(join(folder, 'many/one.yaml'), 'version: 1\nname: one\n');
    expect(faults('[{ use: ./many/one.yaml, as: a }, { use: ./many/one.yaml, as: b }]')).toEqual([
      'many/one.yaml:1:1 upstream: is missing (drivers: http)',
    ]);
  });

  it('of an adapter file are told with the file', () => {
    writeFileSync(join(folder, 'many/one.yaml'), 'version: 1\nname: one\n');
    expect(faults('[./many]')).toEqual(['many/one.yaml:1:1 upstream: is missing (drivers: http)']);
  });
});
