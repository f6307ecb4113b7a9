// TLS: a private authority that the adapter names, and certificates that are not to be trusted.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixed } from '../../helpers/templates.ts';
import { connect, failed, postJob, replied, serve } from './fixture.ts';
import { serveProxy } from './proxy-server.ts';

let folder: string;
let caFile: string;

interface Pair {
  key: string;
  cert: string;
}

/** @returns key and certificate for 127.0.0.1, signed by the test's authority. */
let localhost: Pair;
let otherName: Pair;

function openssl(...args: string[]): void {
  try {
    execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  } catch (error) {
    throw new Error(
      `this test needs the openssl command (Debian: apt-get install openssl): ${String(error)}`,
    );
  }
}

function certificate(name: string, altName: string): Pair {
  const file = join(folder, `${name}.ext`);
  writeFileSync(file, `subjectAltName=${altName}\n`);
  openssl(
    'req',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.csr`,
    '-subj',
    `/CN=${name}`,
  );
  openssl(
    ...['x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'],
    ...['-days', '2', '-out', `${name}.pem`, '-extfile', file],
  );
  return {
    key: readFileSync(join(folder, `${name}.key`), 'utf8'),
    cert: readFileSync(join(folder, `${name}.pem`), 'utf8'),
  };
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'taskferry-tls-'));
  caFile = join(folder, 'ca.pem');
  openssl(
    ...[
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
      '-days',
      '2',
      '-subj',
      '/CN=Test CA',
    ],
    ...['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign'],
  );
  localhost = certificate('localhost', 'IP:127.0.0.1');
  otherName = certificate('other', 'DNS:other.test');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('an upstream with a certificate of a private authority', () => {
  test('is trusted when the adapter names the authority', async () => {
    const server = await serve(undefined, localhost);
    const connection = connect({
      baseUrl: server.origin,
      ca: caFile,
      auth: { kind: 'bearer', token: fixed('t') },
    });
    for (const _time of [1, 2])
      expect(replied(await connection.perform(postJob, {})).response.status).toBe(200n);
    expect(server.seen[0]?.headers.authorization).toBe('Bearer t');
    expect(server.seen.map(({ connection: number }) => number)).toEqual([1, 1]);
  });

  test('is refused before anything is sent when the adapter does not', async () => {
    const server = await serve(undefined, localhost);
    const result = failed(await connect({ baseUrl: server.origin }).perform(postJob, {}));
    expect(result).toMatchObject({ code: 'connect', sent: false });
    expect(result.reason).toMatch(
      /certificate of 127\.0\.0\.1:\d+ is not trusted .* name its authority in upstream\.ca/,
    );
    expect(server.seen).toEqual([]);
  });

  test('is refused when the certificate is for another name', async () => {
    const server = await serve(undefined, otherName);
    const result = failed(await connect({ baseUrl: server.origin, ca: caFile }).perform(postJob, {}));
    expect(result).toMatchObject({ code: 'connect', sent: false });
    expect(result.reason).toContain('is for another name');
    expect(server.seen).toEqual([]);
  });

  test('is reached through the tunnel of a proxy', async () => {
    const server = await serve(undefined, localhost);
    const proxy = await serveProxy();
    const connection = connect({ baseUrl: server.origin, ca: caFile, proxy: fixed(proxy.url) });
    for (const _time of [1, 2]) replied(await connection.perform(postJob, {}));
    expect(proxy.seen.map(({ method, target }) => `${method} ${target}`)).toEqual([
      `CONNECT 127.0.0.1:${server.port}`,
    ]);
    expect(server.seen.map(({ connection: number }) => number)).toEqual([1, 1]);
  });
});

test('a CA file that is not there is a connection failure that names it, and mends itself', async () => {
  const server = await serve(undefined, localhost);
  const late = join(folder, 'late.pem');
  const connection = connect({ baseUrl: server.origin, ca: late });
  const result = failed(await connection.perform(postJob, {}));
  expect(result).toMatchObject({ code: 'connect', sent: false });
  expect(result.reason).toBe(`upstream.ca can't be read: ${late} (ENOENT)`);
  writeFileSync(late, readFileSync(caFile));
  replied(await connection.perform(postJob, {}));
});
