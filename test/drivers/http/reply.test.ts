// What becomes of a reply: bodies, headers, redirects, compressed and unreadable ones.

import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { StepReply } from '../../../src/drivers/driver.ts';
import type { ReadKind } from '../../../src/drivers/http/compiled.ts';
import { json } from '../../helpers/http-server.ts';
import { fixed, text } from '../../helpers/templates.ts';
import { connect, credentials, failed, getJob, type Replied, replied, serve, step } from './fixture.ts';

interface Answer {
  status?: number;
  headers?: { [name: string]: string | string[] };
  body?: string | Buffer;
  read?: ReadKind;
  method?: 'GET' | 'HEAD';
  maxBytes?: number;
}

async function answered({
  status = 200,
  headers = {},
  body,
  read = 'json',
  method = 'GET',
  maxBytes,
}: Answer): Promise<StepReply> {
  const server = await serve((_request, response) => {
    response.writeHead(status, headers);
    response.end(body);
  });
  return connect({ baseUrl: server.origin }).perform(
    step(text`/job`, { read, method }),
    {},
    maxBytes === undefined ? {} : { maxBytes },
  );
}

const reply = async (answer: Answer): Promise<Replied> => replied(await answered(answer));

describe('a JSON reply', () => {
  test.each([
    'application/json',
    'application/vnd.acme.job+json; charset=utf-8',
    'text/plain',
    'text/html',
    undefined,
  ])('is read whatever its content type says (%s)', async (type) => {
    const { response, ok, unreadable } = await reply({
      body: '{"id": 9007199254740993, "x": 1.5}',
      headers: type === undefined ? {} : { 'content-type': type },
    });
    expect(response).toMatchObject({ status: 200n, body: { id: 9007199254740993n, x: 1.5 } });
    expect(ok).toBe(true);
    expect(unreadable).toBeUndefined();
  });

  test('may start with a byte order mark', async () => {
    expect((await reply({ body: '\ufeff{"a": 1}' })).response.body).toEqual({ a: 1n });
  });

  test.each<[string, Answer]>([
    ['204', { status: 204 }],
    ['205', { status: 205 }],
    ['304', { status: 304 }],
    [
      '200 of length 0',
      { status: 200, headers: { 'content-length': '0', 'content-type': 'application/json' } },
    ],
    ['200 of white space', { status: 200, body: ' \n' }],
    ['202 with an empty chunked body', { status: 202, headers: { 'transfer-encoding': 'chunked' } }],
  ])('of %s is no data, not an error', async (_name, answer) => {
    const { response, unreadable } = await reply(answer);
    expect(response.body).toBeNull();
    expect(unreadable).toBeUndefined();
  });

  test('that is no JSON is unreadable, with status, type and how it starts', async () => {
    const page = `<p>\n\u0000\u001b[31mOops${'x'.repeat(500)}</p>`;
    const { response, ok, unreadable } = await reply({
      body: page,
      headers: { 'content-type': 'text/html; charset=utf-8' },
    });
    expect(response.body).toBeNull();
    expect(ok).toBe(true);
    expect(unreadable).toMatch(/^the reply \(200, text\/html; charset=utf-8\) is not JSON: <p> \[31mOopsx+$/);
    expect(unreadable?.split(': ')[1]).toHaveLength(200);
  });

  test('that holds a whole number of more than a thousand digits is unreadable, and says so', async () => {
    const { unreadable } = await reply({ body: `{"id":${'7'.repeat(900_000)}}` });
    expect(unreadable).toContain(
      "can't be read (the number 77777777777777777777… has more than 1000 digits)",
    );
  });

  test.each<[string, string, string]>([
    ['<!DOCTYPE html><html><head><title>Sign in · Example</title>', 'json', 'to sign in: Sign in · Example'],
    ['<html><title>CI</title><form><input name=p type="password">', 'json', 'to sign in: CI'],
    ['\n<?xml version="1.0"?>\n<html><title>502 Bad Gateway</title>', 'json', ': 502 Bad Gateway'],
    ['<html><body>no such backend</body></html>', 'jsonl', ': <html><body>no such backend'],
    ['<html><title>Login</title></html>', 'csv', 'to sign in: Login'],
  ])('that is a web page is told as such (%j, read as %s)', async (body, read, expected) => {
    const server = await serve((_request, response) => void response.writeHead(200).end(body));
    const what = step(text`/job`, { read: read as 'json' });
    const { unreadable } = replied(await connect({ baseUrl: server.origin }).perform(what, {}));
    expect(unreadable).toContain(`but a web page${expected.startsWith(':') ? '' : ' '}${expected}`);
  });

  test.each([
    [429, 'Retry later\n'],
    [403, 'API rate limit exceeded'],
  ])('that is plain text is no fault where it says that there were too many (%i)', async (status, body) => {
    const server = await serve(
      (_request, response) => void response.writeHead(status, { 'content-type': 'text/plain' }).end(body),
    );
    const result = replied(await connect({ baseUrl: server.origin }).perform(getJob, {}));
    expect(result).toMatchObject({ limited: true, response: { body } });
    expect(result).not.toHaveProperty('unreadable');
  });

  test('that is a web page says nothing, even where there were too many requests', async () => {
    const { response, unreadable } = await reply({ status: 429, body: '<html><title>Slow down</title>' });
    expect(response.body).toBeNull();
    expect(unreadable).toContain('but a web page: Slow down');
  });

  test.each([
    ['{"a": '],
    ['nope'],
    ['{"a":1}{"a":2}'],
    ['{"a": 1e999}'],
    [Buffer.from('{"a":1}', 'utf16le')],
  ])('that is broken is unreadable: %s', async (body) => {
    const { response, unreadable } = await reply({ body });
    expect(response.body).toBeNull();
    expect(unreadable).toContain('the reply (200, no content type)');
  });

  test('that is nested very deep is unreadable and says so', async () => {
    expect((await reply({ body: `${'['.repeat(5000)}${']'.repeat(5000)}` })).unreadable).toContain(
      'nested deeper',
    );
  });

  test('with an error status is given with its body', async () => {
    const { response, ok } = await reply({ status: 422, body: '{"message": "Unexpected inputs"}' });
    expect(response).toMatchObject({ status: 422n, body: { message: 'Unexpected inputs' } });
    expect(ok).toBe(false);
  });

  test('with an error status may be markup: the status is there all the same', async () => {
    const { response, unreadable } = await reply({ status: 502, body: '<h1>Bad gateway</h1>' });
    expect(response.status).toBe(502n);
    expect(unreadable).toContain('<h1>Bad gateway</h1>');
  });
});

describe('other reads', () => {
  test('text is UTF-8, with invalid bytes replaced', async () => {
    const body = Buffer.concat([Buffer.from('zespół '), Buffer.from([0xff, 0xfe])]);
    expect((await reply({ read: 'text', body })).response.body).toBe('zespół \ufffd\ufffd');
    expect((await reply({ read: 'text', body: '' })).response.body).toBe('');
  });

  test('lines of JSON become a list, with blank lines left out', async () => {
    const body = '{"id": 9007199254740993}\r\n\n[1]\n"x"\n';
    expect((await reply({ read: 'jsonl', body })).response.body).toEqual([
      { id: 9007199254740993n },
      [1n],
      'x',
    ]);
    expect((await reply({ read: 'jsonl', body: '' })).response.body).toEqual([]);
  });

  test('a bad line of JSON is named by its number', async () => {
    const { response, unreadable } = await reply({ read: 'jsonl', body: '{"a":1}\n\n{"a":\n{}' });
    expect(response.body).toBeNull();
    expect(unreadable).toContain('is not JSON in line 3: {"a":');
  });

  test('none ignores the body, whatever it is', async () => {
    for (const body of ['<html>', '{"a":1}', 'x'.repeat(3_000_000)]) {
      const { response, unreadable } = await reply({ read: 'none', body });
      expect(response).toMatchObject({ status: 200n, body: null });
      expect(unreadable).toBeUndefined();
    }
  });

  test('HEAD has no body', async () => {
    const { response } = await reply({
      method: 'HEAD',
      headers: { 'content-length': '500', 'x-state': 'done' },
    });
    expect(response).toMatchObject({ body: null, headers: { 'x-state': 'done', 'content-length': '500' } });
  });
});

test('headers have lower-case names, and what is repeated is joined by a comma', async () => {
  const { response } = await reply({
    headers: {
      'X-Job-ID': '7',
      'Set-Cookie': ['a=1', 'b=2'],
      Link: ['<x>; rel=a', '<y>; rel=b'],
      Constructor: 'c',
    },
    body: '{}',
  });
  expect(response.headers).toMatchObject({
    'x-job-id': '7',
    'set-cookie': 'a=1, b=2',
    link: '<x>; rel=a, <y>; rel=b',
    constructor: 'c',
  });
});

describe('a redirect', () => {
  test.each(['GET', 'POST', 'PUT', 'DELETE'] as const)(
    'is given as a reply and never followed (%s)',
    async (method) => {
      for (const status of [301, 302, 303, 307, 308]) {
        const server = await serve((_request, response) =>
          json(response, status, [], { location: '/runs/' }),
        );
        const { response, ok } = replied(
          await connect({ baseUrl: server.origin }).perform(step(text`/runs`, { method }), {}),
        );
        expect(response).toMatchObject({
          status: BigInt(status),
          headers: { location: '/runs/' },
          url: `${server.origin}/runs`,
        });
        expect(ok).toBe(false);
        expect(server.seen).toHaveLength(1);
      }
    },
  );
});

describe('a compressed reply that nobody asked for', () => {
  const body = '{"id": 9007199254740993}';
  test.each([
    ['gzip', gzipSync(body)],
    ['x-gzip', gzipSync(body)],
    ['deflate', deflateSync(body)],
    ['deflate', deflateRawSync(body)],
    ['br', brotliCompressSync(body)],
    ['identity', Buffer.from(body)],
    ['GZIP', gzipSync(body)],
  ])('is unfolded (%s)', async (encoding, bytes) => {
    const { response } = await reply({ body: bytes, headers: { 'content-encoding': encoding } });
    expect(response.body).toEqual({ id: 9007199254740993n });
  });

  test('is stopped at the limit of the unfolded size', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, 0x20));
    expect(bomb.length).toBeLessThan(60_000);
    const before = process.memoryUsage().rss;
    expect(failed(await answered({ body: bomb, headers: { 'content-encoding': 'gzip' } }))).toMatchObject({
      code: 'too_large',
      sent: true,
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(40_000_000);
  });

  test.each([
    ['zip', gzipSync(body), 'unknown content-encoding "zip"'],
    ['constructor', gzipSync(body), 'unknown content-encoding'],
    ['gzip', Buffer.from(body), 'is not valid gzip'],
    ['gzip', gzipSync(body).subarray(0, 20), 'is not valid gzip'],
  ])('with %s is unreadable when it can not be unfolded', async (encoding, bytes, why) => {
    const { response, unreadable } = await reply({ body: bytes, headers: { 'content-encoding': encoding } });
    expect(response.body).toBeNull();
    expect(unreadable).toContain(why);
  });
});

describe('a large reply', () => {
  test('is read up to the limit, and a step may raise it', async () => {
    const body = JSON.stringify('x'.repeat(1024 * 1024 - 2));
    expect(body).toHaveLength(1024 * 1024);
    expect((await reply({ body })).response.body).toHaveLength(1024 * 1024 - 2);
    const larger = JSON.stringify('x'.repeat(10_000_000));
    expect((await reply({ body: larger, maxBytes: 11_000_000 })).response.body).toHaveLength(10_000_000);
    expect(failed(await answered({ body: '{"a": 12345}', maxBytes: 8 })).code).toBe('too_large');
  });

  test('of 10 MB is given up within a chunk of the limit, and its socket is destroyed', async () => {
    let written = 0;
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': String(10 * 1024 * 1024) });
      const chunk = Buffer.alloc(64 * 1024, 0x20);
      const write = (): void => {
        while (written < 10 * 1024 * 1024 && !response.destroyed) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', write);
        }
      };
      write();
    });
    const result = failed(
      await connect({ baseUrl: server.origin, maxBytes: 256 * 1024 }).perform(getJob, {}),
    );
    expect(result).toMatchObject({ code: 'too_large', sent: true });
    expect(result.reason).toBe(`127.0.0.1:${server.port} sent more than 262144 bytes`);
    await expect.poll(() => server.sockets.size).toBe(0);
    expect(written).toBeLessThan(10 * 1024 * 1024);
  });

  test('that never ends is ended by the limit', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200);
      const write = (): void => {
        while (!response.destroyed && response.write('[1,'.repeat(1000)));
        if (!response.destroyed) response.once('drain', write);
      };
      write();
    });
    expect(failed(await connect({ baseUrl: server.origin }).perform(getJob, {})).code).toBe('too_large');
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test('with an error status is still told by its status', async () => {
    const { response, unreadable } = await reply({ status: 404, body: 'x'.repeat(100), maxBytes: 10 });
    expect(response).toMatchObject({ status: 404n, body: null });
    expect(unreadable).toContain('sent more than 10 bytes');
  });
});

test('a secret of the adapter is in no reason and no URL', async () => {
  const connection = connect(
    {
      auth: { kind: 'query', name: 'key', value: text`${'secrets.TOKEN'}` },
      headers: [{ name: 'X-Key', value: fixed('abc') }],
    },
    credentials({ TOKEN: 's3cret-value' }),
  );
  const result = failed(await connection.perform(getJob, {}));
  expect(result.reason).toBe('127.0.0.1:1 refuses connections');
});
