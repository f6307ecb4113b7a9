// TLS: a private authority that the adapter names, and certificates that are not to be trusted.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixed } from '../../helpers/templates.ts';
import { type Authority, createAuthority, type Pair } from './certificates.ts';
import { connect, failed, postJob, replied, serve } from './fixture.ts';
import { serveProxy } from './proxy-server.ts';

let authority: Authority;
let caFile: string;
let localhost: Pair;
let otherName: Pair;

beforeAll(() => {
  authority = createAuthority();
  caFile = authority.caFile;
  localhost = authority.issue('localhost', 'IP:127.0.0.1');
  otherName = authority.issue('other', 'DNS:other.test');
});

afterAll(() => authority.remove());

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
  const late = join(authority.folder, 'late.pem');
  const connection = connect({ baseUrl: server.origin, ca: late });
  const result = failed(await connection.perform(postJob, {}));
  expect(result).toMatchObject({ code: 'connect', sent: false });
  expect(result.reason).toBe(`upstream.ca can't be read: ${late} (ENOENT)`);
  writeFileSync(late, readFileSync(caFile));
  replied(await connection.perform(postJob, {}));
});
