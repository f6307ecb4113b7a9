// What `taskferry check` says.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { checkFiles } from '../../src/config/check.ts';
import { httpFormat } from '../../src/drivers/http/format.ts';

const good = join(import.meta.dirname, 'good');
const repository = join(import.meta.dirname, '../..');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'taskferry-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function check(...paths: string[]) {
  const { lines, exitCode } = checkFiles(paths, [httpFormat]);
  return {
    lines: lines.map((line) => line.replaceAll(`${folder}/`, '').replaceAll(`${good}/`, '')),
    exitCode,
  };
}

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

it('names the tools of a good adapter, and needs none of its variables', () => {
  expect(check(join(good, 'jenkins.yaml'))).toEqual({
    lines: ['jenkins.yaml: jenkins, tool build_job'],
    exitCode: 0,
  });
});

it('checks a folder of adapters', () => {
  const { lines, exitCode } = check(good);
  expect(lines).toHaveLength(5);
  expect(lines.at(-1)).toBe('4 files, all good');
  expect(exitCode).toBe(0);
});

it('tells problems and warnings of each file and goes on with the next', () => {
  const bad = file('bad.yaml', 'version: 1\nname: bad\n');
  const doubtful = file(
    'doubtful.yaml',
    `version: 1
name: doubtful
env: [REGION]
upstream: { driver: http, baseUrl: "https://ci.example.com" }
tools:
  list: { description: Lists., call: { request: GET / } }
  read: { description: Reads., call: { request: GET / } }
`,
  );
  expect(check(bad, join(folder, 'nowhere.yaml'), doubtful)).toEqual({
    lines: [
      'bad.yaml:1:1 upstream: is missing (drivers: http)',
      'nowhere.yaml the file does not exist',
      'doubtful.yaml:3:1 env: warning: REGION is never read (read it as env.REGION, or remove it)',
      'doubtful.yaml: doubtful, tools list, read',
      '3 files, 2 with problems',
    ],
    exitCode: 1,
  });
});

it('checks a settings file as such', () => {
  expect(checkFiles([join(repository, 'config/taskferry.yaml')], [httpFormat]).exitCode).toBe(0);
  expect(check(file('settings.yaml', 'version: 1\nlisten: { prot: 1 }\n'))).toEqual({
    lines: ['settings.yaml:2:11 listen.prot: unknown key "prot", did you mean "port"?'],
    exitCode: 1,
  });
});

it.each(['limits: { requestBytes: 8MiB }', 'requestState: { keys: [OUR_KEY] }', 'auth: { kind: none }'])(
  'takes a file with nothing but %s for settings',
  (field) => {
    expect(check(file('settings.yaml', `version: 1\n${field}\n`))).toEqual({
      lines: ['settings.yaml: settings, good'],
      exitCode: 0,
    });
  },
);

it('takes an adapter with limits for an adapter, however little else it has', () => {
  expect(check(file('a.yaml', 'version: 1\nname: a\nlimits: { concurrency: 1 }\n')).lines).toContain(
    'a.yaml:1:1 upstream: is missing (drivers: http)',
  );
});

it('has nothing good to say about no file at all', () => {
  expect(check().exitCode).toBe(1);
  expect(check(folder)).toEqual({ lines: [`${folder} is a folder, not a file`], exitCode: 1 });
});

it('reads regular files alone, and none that is larger than an adapter may be', () => {
  const pipe = join(folder, 'pipe.yaml');
  execFileSync('mkfifo', [pipe]);
  expect(check(pipe)).toEqual({ lines: ['pipe.yaml is no regular file'], exitCode: 1 });
  expect(check('/dev/zero').lines).toEqual(['/dev/zero is no regular file']);
  const large = file('large.yaml', `# ${'x'.repeat(1024 * 1024)}`);
  expect(check(large).lines).toEqual(['large.yaml the file is larger than 1048576 bytes']);
});
