// Values of env and secrets: from the environment or from files, never silently empty, read anew when they change.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: values that look like holes are what is tested.

import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadAdapter } from '../../src/config/load.ts';
import { adapterVariables, namedVariable, variableProblems } from '../../src/config/variables.ts';
import { httpFormat } from '../../src/drivers/http/format.ts';
import { formatProblem } from '../../src/errors.ts';

const adapter = {
  name: 'sample',
  env: [
    { name: 'CI_URL', default: undefined },
    { name: 'REGION', default: 'eu' },
  ],
  secrets: ['TOKEN'],
};
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'taskferry-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

it('the secrets that can be read are known for redaction, also while another is missing', () => {
  const two = { ...adapter, secrets: ['TOKEN', 'OTHER'] };
  const variables = adapterVariables(two, { environment: { TOKEN: 'secret-1' } });
  expect(variables.readableSecrets()).toEqual(['secret-1']);
});

describe('values', () => {
  it('come from the environment, else from the default', () => {
    const variables = adapterVariables(adapter, { environment: { CI_URL: 'http://ci', TOKEN: 'secret-1' } });
    expect(variables.values()).toEqual({
      env: { CI_URL: 'http://ci', REGION: 'eu' },
      secrets: { TOKEN: 'secret-1' },
    });
    expect(variables.faults()).toEqual([]);
  });

  it('stay text, whatever they look like', () => {
    const environment = { CI_URL: '0123', REGION: 'no', TOKEN: 'pa$&ss$$x$1 ${HOME} ab: c #d "e"' };
    expect(adapterVariables(adapter, { environment }).values()).toEqual({
      env: { CI_URL: '0123', REGION: 'no' },
      secrets: { TOKEN: environment.TOKEN },
    });
  });

  it('lose exactly one line end, in variables and in files', () => {
    const environment = {
      CI_URL: 'http://ci\r\n',
      REGION_FILE: file('region', '\ufeffeu\r\n'),
      TOKEN_FILE: file('token', '-----BEGIN-----\nabc\n-----END-----\n\n'),
    };
    expect(adapterVariables(adapter, { environment }).values()).toEqual({
      env: { CI_URL: 'http://ci', REGION: 'eu' },
      secrets: { TOKEN: '-----BEGIN-----\nabc\n-----END-----\n' },
    });
  });

  it('may have other names in the settings', () => {
    const variables = adapterVariables(adapter, {
      environment: {
        STAGING_URL: 'http://staging',
        STAGING_TOKEN_FILE: file('t', 'staging-token\n'),
        TOKEN: 'other',
      },
      rename: { CI_URL: 'STAGING_URL', TOKEN: 'STAGING_TOKEN' },
    });
    expect(variables.values()).toMatchObject({
      env: { CI_URL: 'http://staging' },
      secrets: { TOKEN: 'staging-token' },
    });
  });
});

describe('missing values', () => {
  it('are an error that names the variable', () => {
    const variables = adapterVariables(adapter, { environment: { CI_URL: 'http://ci' } });
    expect(() => variables.values()).toThrow(
      expect.objectContaining({ code: 'secret_missing', message: 'the secret TOKEN of sample is not set' }),
    );
  });

  it.each(['', ' ', '\n', '\t \r\n'])('an empty or blank secret (%j) is an error', (TOKEN) => {
    const { message } = adapterVariables(adapter, { environment: { CI_URL: 'x', TOKEN } }).faults()[0] ?? {};
    expect(message).toBe('the secret TOKEN is empty');
  });

  it('an empty variable that is no secret is a value', () => {
    const variables = adapterVariables(adapter, {
      environment: { CI_URL: '', REGION: '', TOKEN: 'secret-1' },
    });
    expect(variables.values().env).toEqual({ CI_URL: '', REGION: '' });
  });

  it('a file that cannot be read is an error that names both', () => {
    const path = join(folder, 'nowhere');
    const variables = adapterVariables(adapter, { environment: { CI_URL: 'x', TOKEN_FILE: path } });
    expect(() => variables.values()).toThrow(
      expect.objectContaining({
        code: 'secret_unreadable',
        message: `TOKEN_FILE names ${path}, which can't be read (ENOENT)`,
      }),
    );
  });

  it('are told where they are listed, though other lines hold the name too', () => {
    const text = `version: 1
name: sample
env: # HOST is not here
  URL: { description: "like HOST" }
  HOST:
upstream: { driver: http, baseUrl: "\${{ env.URL }}", headers: { X: "\${{ env.HOST }}" } }
tools:
  list: { description: Lists., call: { request: GET / } }
`;
    const { adapter: loaded } = loadAdapter(text, { file: 'sample.yaml', formats: [httpFormat] });
    if (loaded === undefined) throw new Error('not loaded');
    const variables = adapterVariables(loaded, { environment: { URL: 'http://ci' } });
    expect(variableProblems(loaded, variables)).toMatchObject([{ line: 5, column: 3, path: 'env' }]);
  });

  it('are told with the line where the adapter lists them', () => {
    const text = `version: 1
name: sample
env:
  CI_URL:
  REGION: { default: eu }
secrets:
  - TOKEN
upstream: { driver: http, baseUrl: "\${{ env.CI_URL }}", headers: { X: "\${{ secrets.TOKEN }}\${{ env.REGION }}" } }
tools:
  list: { description: Lists., call: { request: GET / } }
`;
    const { adapter: loaded, problems } = loadAdapter(text, { file: 'sample.yaml', formats: [httpFormat] });
    expect(problems).toEqual([]);
    if (loaded === undefined) throw new Error('not loaded');
    const rename = { TOKEN: 'MY_TOKEN' };
    const variables = adapterVariables(loaded, { environment: {}, rename });
    expect(variableProblems(loaded, variables, rename).map(formatProblem)).toEqual([
      'sample.yaml:4:3 env: the variable CI_URL of sample is not set (set CI_URL, or CI_URL_FILE to the path of a file that holds it)',
      'sample.yaml:7:5 secrets: the secret MY_TOKEN of sample is not set (set MY_TOKEN, or MY_TOKEN_FILE to the path of a file that holds it)',
    ]);
  });
});

describe('a file that changes', () => {
  it('is read again when its time stamp moves', () => {
    const path = file('token', 'first-token\n');
    const variables = adapterVariables(adapter, { environment: { CI_URL: 'x', TOKEN_FILE: path } });
    expect(variables.values().secrets.TOKEN).toBe('first-token');
    writeFileSync(path, 'other-token\n');
    utimesSync(path, new Date(), new Date(Date.now() + 5000));
    expect(variables.values().secrets.TOKEN).toBe('other-token');
  });

  it('is read again by refresh(), which says whether anything changed', () => {
    const path = file('token', 'first-token\n');
    const stamp = new Date(1_900_000_000_000);
    utimesSync(path, stamp, stamp);
    const variables = adapterVariables(adapter, { environment: { CI_URL: 'x', TOKEN_FILE: path } });
    variables.values();
    expect(variables.refresh()).toBe(false);
    writeFileSync(path, 'other-token\n');
    utimesSync(path, stamp, stamp);
    expect(variables.refresh()).toBe(true);
    expect(variables.values().secrets.TOKEN).toBe('other-token');
  });
});

it('the last twenty values of a rotated secret stay known for redaction', () => {
  const environment = { CI_URL: 'x', TOKEN: '' };
  const variables = adapterVariables(adapter, { environment });
  for (let i = 1; i <= 25; i++) {
    environment.TOKEN = `token-${i}`;
    variables.values();
  }
  expect(variables.readableSecrets()).toEqual(Array.from({ length: 20 }, (_, i) => `token-${i + 6}`));
  environment.TOKEN = '';
  expect(variables.readableSecrets()).toContain('token-25');
});

it('a single variable can be read by name', () => {
  expect(namedVariable('KEY', { KEY: 'value' })).toEqual({ text: 'value' });
  expect(namedVariable('KEY', {}).fault?.message).toContain('KEY');
});
