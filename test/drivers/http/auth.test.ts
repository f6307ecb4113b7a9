// Which credentials a request carries: the upstream's, the step's own, none, and at which hosts.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { describe, expect, test } from 'vitest';
import { json, type TestServer } from '../../helpers/http-server.ts';
import { replied, serve } from './fixture.ts';
import { connectWritten, faultsOf, type Written } from './written.ts';

const secrets = { TRIGGER: 'trigger-token-value', READER: 'reader-token-value', TENANT: 'tenant-key-value' };

async function headersOf(upstream: string, step: string): Promise<TestServer['seen'][number]> {
  const server = await serve();
  const connection = connectWritten(server.origin, { upstream, steps: [step], secrets });
  replied(await connection.perform(0, { args: { url: `${server.origin}/files/a?sig=x` } }));
  const [request] = server.seen;
  if (request === undefined) throw new Error('nothing came');
  return request;
}

const bearer = `auth: { bearer: "\${{ secrets.TRIGGER }}" }
headers: { X-Tenant: "\${{ secrets.TENANT }}", X-Version: "2" }
query: { key: "\${{ secrets.TENANT }}", v: "2" }`;

describe('a request', () => {
  test('carries several headers with secrets at once', async () => {
    const { headers } = await headersOf(
      'headers: { X-Api-Key: "${{ secrets.TRIGGER }}", X-App-Key: "Key ${{ secrets.READER }}", Notion-Version: "2022-06-28" }',
      '{ request: GET /jobs }',
    );
    expect(headers).toMatchObject({
      'x-api-key': 'trigger-token-value',
      'x-app-key': 'Key reader-token-value',
      'notion-version': '2022-06-28',
    });
  });

  test('carries none of the upstream credentials with auth: none, but all else', async () => {
    const { headers, url } = await headersOf(bearer, '{ request: "GET /files/a?sig=x", auth: none }');
    expect(headers).toMatchObject({ 'x-version': '2' });
    expect(headers.authorization).toBeUndefined();
    expect(headers['x-tenant']).toBeUndefined();
    expect(url).toBe('/files/a?sig=x&v=2');
  });

  test('may prove who asks in its own way', async () => {
    const { headers, url } = await headersOf(
      bearer,
      '{ request: GET /jobs, auth: { basic: { username: me, password: "${{ secrets.READER }}" } } }',
    );
    expect(headers).toMatchObject({
      authorization: `Basic ${Buffer.from('me:reader-token-value').toString('base64')}`,
      'x-tenant': 'tenant-key-value',
    });
    expect(url).toBe('/jobs?key=tenant-key-value&v=2');
  });

  test('may do so by a header that replaces the one of the upstream', async () => {
    const { headers } = await headersOf(
      bearer,
      '{ request: GET /jobs, headers: { authorization: "Bearer ${{ secrets.READER }}" } }',
    );
    expect(headers.authorization).toBe('Bearer reader-token-value');
  });

  test('takes its headers from one hole', async () => {
    const written: Written = {
      upstream: 'headers: { X-Version: "2" }',
      steps: ['{ request: GET /jobs, headers: "${{ args.headers }}" }'],
    };
    const server = await serve();
    const connection = connectWritten(server.origin, written);
    replied(await connection.perform(0, { args: { headers: { 'X-Version': '3', 'X-Count': 7n } } }));
    expect(server.seen[0]?.headers).toMatchObject({ 'x-version': '3', 'x-count': '7' });
    expect(await connection.perform(0, { args: { headers: { 'X-A': { b: 1n } } } })).toMatchObject({
      kind: 'failed',
      code: 'invalid_request',
      reason: 'headers.X-A must be text, a number, true or false, or a list of those',
    });
    expect(await connection.perform(0, { args: { headers: { Host: 'a' } } })).toMatchObject({
      reason: 'the header Host is set by taskferry itself',
    });
    expect(server.seen).toHaveLength(1);
  });
});

describe('a host of allowHosts', () => {
  async function follow(credentials: string): Promise<TestServer['seen'][number]> {
    const server = await serve();
    const files = await serve((_request, response) => json(response, 200, {}));
    const connection = connectWritten(server.origin, {
      upstream: `${bearer}\nallowHosts: [{ host: "127.0.0.1:${files.port}"${credentials} }]`,
      steps: ['{ request: "GET ${{ args.url }}", headers: { X-Reader: "${{ secrets.READER }}" } }'],
      secrets,
    });
    replied(await connection.perform(0, { args: { url: `${files.origin}/a.zip?x=1` } }));
    const [request] = files.seen;
    if (request === undefined) throw new Error('nothing came');
    return request;
  }

  test.each(['', ', credentials: false'])('gets no credentials with host%s', async (credentials) => {
    const { headers, url } = await follow(credentials);
    expect(headers.authorization).toBeUndefined();
    expect(headers['x-tenant']).toBeUndefined();
    expect(headers['x-reader']).toBeUndefined();
    expect(url).toBe('/a.zip?x=1');
  });

  test('gets them where the file says so', async () => {
    const { headers, url } = await follow(', credentials: true');
    expect(headers).toMatchObject({
      authorization: 'Bearer trigger-token-value',
      'x-tenant': 'tenant-key-value',
      'x-reader': 'reader-token-value',
    });
    expect(url).toBe('/a.zip?x=1&key=tenant-key-value&v=2');
  });

  test('never gets them over plain http from an https upstream', async () => {
    const files = await serve();
    const connection = connectWritten('https://api.example.com', {
      upstream: `${bearer}\nallowHosts: [{ host: "127.0.0.1:${files.port}", credentials: true }]`,
      steps: ['{ request: "GET ${{ args.url }}" }'],
      secrets,
    });
    replied(await connection.perform(0, { args: { url: `${files.origin}/a.zip` } }));
    expect(files.seen[0]?.headers.authorization).toBeUndefined();
    expect(files.seen[0]?.url).toBe('/a.zip');
  });

  test('must be a host there too', () => {
    const faults = (entry: string): string[] => faultsOf({ upstream: `allowHosts: [${entry}]` });
    expect(faults('{ host: "https://a.example.com", credentials: true }')).toEqual([
      'upstream.allowHosts[0].host: "https://a.example.com" is no host',
    ]);
    expect(faults('{ credentials: true }')).toEqual(['upstream.allowHosts[0].host: is missing']);
    expect(faults('{ host: a.example.com, credential: true }')).toEqual([
      'upstream.allowHosts[0].credential: unknown key "credential", did you mean "credentials"?',
    ]);
    expect(faults('7')).toEqual(['upstream.allowHosts[0]: must be a host, or a map of host and credentials']);
  });
});
