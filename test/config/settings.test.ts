// Settings: defaults, file, variables and flags, in that order of precedence; every fault at its place.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadSettings } from '../../src/config/settings.ts';
import type { SettingsFlags } from '../../src/config/settings-overrides.ts';
import { formatProblem } from '../../src/errors.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'taskferry-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

type Environment = { [name: string]: string };

function load(flags: SettingsFlags = {}, environment: Environment = {}) {
  return loadSettings({ flags, environment, cwd: folder });
}

function withFile(text: string, flags: SettingsFlags = {}, environment: Environment = {}) {
  writeFileSync(join(folder, 'taskferry.yaml'), text);
  return load({ config: 'taskferry.yaml', ...flags }, environment);
}

function faults(text: string, flags: SettingsFlags = {}, environment: Environment = {}): string[] {
  const { settings, problems } = withFile(text, flags, environment);
  expect(settings).toBeUndefined();
  return problems.map((problem) => formatProblem(problem).replace(`${join(folder, 'taskferry.yaml')}:`, ''));
}

describe('settings', () => {
  it('have defaults for everything', () => {
    expect(load().settings).toEqual({
      listen: { host: '127.0.0.1', port: 3737, publicUrl: undefined, hosts: [], origins: [] },
      store: { kind: 'sqlite', path: join(folder, 'taskferry.db') },
      adapters: [],
      auth: { kind: 'none' },
      limits: { requestBytes: 4 * 1024 * 1024 },
      requestState: { keys: [] },
      log: { level: 'info' },
    });
  });

  it('come from the file, then from variables, then from flags', () => {
    const text = 'version: 1\nlisten: { host: 0.0.0.0, port: 1111 }\nlog: { level: debug }\n';
    const environment = { TASKFERRY_PORT: '2222', TASKFERRY_LOG_LEVEL: 'warn' };
    expect(withFile(text).settings).toMatchObject({
      listen: { host: '0.0.0.0', port: 1111 },
      log: { level: 'debug' },
    });
    expect(withFile(text, {}, environment).settings).toMatchObject({
      listen: { port: 2222 },
      log: { level: 'warn' },
    });
    expect(withFile(text, { port: '3333', host: '::1' }, environment).settings?.listen).toMatchObject({
      host: '::1',
      port: 3333,
    });
  });

  it('resolve paths of the file from the file, all others from the working folder', () => {
    const text = 'version: 1\nstore: sqlite:data/tasks.db\nadapters: [./one.yaml, github]\n';
    writeFileSync(join(folder, 'taskferry.yaml'), text);
    const cwd = join(folder, 'elsewhere');
    const config = join(folder, 'taskferry.yaml');
    const { settings } = loadSettings({ flags: { config }, environment: {}, cwd });
    expect(settings?.store).toEqual({ kind: 'sqlite', path: join(folder, 'data/tasks.db') });
    expect(settings?.adapters.map(({ use }) => use)).toEqual([
      { kind: 'path', path: join(folder, 'one.yaml') },
      { kind: 'shipped', name: 'github' },
    ]);
    const flags = { config, store: 'sqlite:x.db', adapters: ['two.yaml'] };
    const other = loadSettings({ flags, environment: { TASKFERRY_ADAPTERS: 'a,b' }, cwd }).settings;
    expect(other?.store).toEqual({ kind: 'sqlite', path: join(cwd, 'x.db') });
    expect(other?.adapters.map(({ use }) => use)).toEqual([{ kind: 'path', path: join(cwd, 'two.yaml') }]);
  });

  it('may be named by a variable, and lists in variables are separated by commas', () => {
    writeFileSync(join(folder, 's.yaml'), 'version: 1\nlisten: { hosts: [a.example.com] }\n');
    const environment = {
      TASKFERRY_CONFIG: 's.yaml',
      TASKFERRY_ADAPTERS: 'github, ./x.yaml',
      TASKFERRY_PORT: '',
    };
    const { settings } = load({}, environment);
    expect(settings?.listen.hosts).toEqual(['a.example.com']);
    expect(settings?.adapters.map(({ written }) => written)).toEqual(['github', './x.yaml']);
    expect(
      load({}, { ...environment, TASKFERRY_HOSTS: 'b.example.com,c.example.com' }).settings?.listen.hosts,
    ).toEqual(['b.example.com', 'c.example.com']);
  });

  it('read signing keys by the name of their variable', () => {
    const text = 'version: 1\nrequestState: { keys: [NEW_KEY, OLD_KEY] }\n';
    const environment = { NEW_KEY: 'n'.repeat(32), OLD_KEY: 'o'.repeat(40) };
    expect(withFile(text, {}, environment).settings?.requestState.keys).toEqual([
      'n'.repeat(32),
      'o'.repeat(40),
    ]);
    expect(faults(text, {}, { NEW_KEY: 'short' })).toEqual([
      '2:24 requestState.keys[0]: the key NEW_KEY is shorter than 32 characters (make one with: openssl rand -base64 32)',
      '2:33 requestState.keys[1]: the secret OLD_KEY of the settings is not set (set OLD_KEY, or OLD_KEY_FILE to the path of a file that holds it)',
    ]);
  });
});

describe('faulty settings', () => {
  it('name every unknown key and bad type at its place', () => {
    expect(
      faults(`version: 1
listn: { port: 1 }
listen: { prot: 1, port: 99999, publicUrl: example.com }
store: redis://x
auth: { kind: token }
log: { level: verbos }
limits: { requestBytes: 4MB }
adapters: [{ use: x, tools: [], env: { a: B } }]
`),
    ).toEqual([
      '2:1 listn: unknown key "listn", did you mean "listen"?',
      '3:11 listen.prot: unknown key "prot", did you mean "port"?',
      '3:26 listen.port: must be at most 65535',
      '3:44 listen.publicUrl: must be an http or https URL',
      '4:8 store: must be sqlite:PATH',
      '5:15 auth.kind: must be none',
      '6:15 log.level: must be one of silent, fatal, error, warn, info, debug, trace',
      '7:25 limits.requestBytes: must be a size such as 256KiB (units: KiB, MiB)',
      '8:29 adapters[0].tools: the list is empty',
      '8:40 adapters[0].env.a: must be a name in capitals such as API_TOKEN',
    ]);
  });

  it('are refused when the version is missing or not known', () => {
    expect(faults('listen: {}\n')).toEqual(['1:1 version: is missing']);
    expect(faults('version: 2\n')).toEqual(['1:10 version: is no known version of the settings (known: 1)']);
  });

  it('are refused when the file is missing, empty, or no map', () => {
    const { problems } = load({ config: 'nowhere.yaml' });
    expect(problems).toMatchObject([{ line: 0, message: 'the file does not exist' }]);
    expect(faults('')).toEqual(['1:1 the file is empty']);
    expect(faults('[]')).toEqual(['1:1 the file must hold a map']);
    expect(faults('version: 1\n\tlog: x\n')[0]).toMatch(/^2:1 /);
  });

  it('name the flag or variable that is wrong', () => {
    const { problems } = load(
      { port: '70000', store: 'postgres://x' },
      { TASKFERRY_LOG_LEVEL: 'inof', TASKFERRY_PUBLIC_URL: 'example.com' },
    );
    expect(problems.map(formatProblem)).toEqual([
      '--port "70000" is no port (a whole number from 0 to 65535)',
      'TASKFERRY_PUBLIC_URL must be an http or https URL',
      '--store "postgres://x" is no store (write sqlite:PATH)',
      'TASKFERRY_LOG_LEVEL "inof" is no log level, did you mean "info"? (silent, fatal, error, warn, info, debug, trace)',
    ]);
  });

  it('warn of a variable that is probably misspelt', () => {
    expect(
      load({}, { TASKFERRY_PROT: '1', TASKFERRY_CI_TOKEN_OF_MINE: 'x' }).warnings.map(formatProblem),
    ).toEqual(['TASKFERRY_PROT this variable is not known, did you mean "TASKFERRY_PORT"?']);
  });
});
