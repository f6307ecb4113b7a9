// Replies that are remembered by their ETag: when a 304 stands for one, and for whom it never does.

import { describe, expect, test } from 'vitest';
import type { HttpStep } from '../../../src/drivers/http/compiled.ts';
import { createEtagCache, type Remembered } from '../../../src/drivers/http/etag-cache.ts';
import { type Handler, json } from '../../helpers/http-server.ts';
import { fixed, text } from '../../helpers/templates.ts';
import { connect, credentials, failed, replied, serve, step } from './fixture.ts';

const poll = (rest: Partial<HttpStep> = {}): HttpStep => step(text`/job`, { etag: true, ...rest });

/** Answers 304 to whoever has the version that is there now. */
function versioned(state: { etag: string; body: unknown; headers?: { [name: string]: string } }): Handler {
  return (request, response) => {
    const headers = { etag: state.etag, ...state.headers };
    if (request.headers['if-none-match'] === state.etag) response.writeHead(304, headers).end();
    else json(response, 200, state.body, headers);
  };
}

describe('a reply with an ETag', () => {
  test('is asked for anew only if it has changed, and a 304 gives what is remembered', async () => {
    const state = { etag: 'W/"1"', body: { state: 'running' } };
    const server = await serve(versioned(state));
    const connection = connect({ baseUrl: server.origin });
    const first = replied(await connection.perform(poll(), {}));
    const second = replied(await connection.perform(poll(), {}));
    expect(second).toMatchObject({ ok: true, response: { status: 200n, body: { state: 'running' } } });
    expect(second.response.bytes).toBe(first.response.bytes);
    Object.assign(state, { etag: '"2"', body: { state: 'done' } });
    expect(replied(await connection.perform(poll(), {})).response.body).toEqual({ state: 'done' });
    expect(replied(await connection.perform(poll(), {})).response.body).toEqual({ state: 'done' });
    expect(server.seen.map(({ headers }) => headers['if-none-match'])).toEqual([
      undefined,
      'W/"1"',
      'W/"1"',
      '"2"',
    ]);
  });

  test('is not remembered for a step that does not ask for it', async () => {
    const server = await serve(versioned({ etag: '"1"', body: {} }));
    const connection = connect({ baseUrl: server.origin });
    for (let n = 0; n < 2; n++) replied(await connection.perform(poll({ etag: false }), {}));
    expect(server.seen[1]?.headers).not.toHaveProperty('if-none-match');
  });

  test('brings its headers up to date, but what it said of limits counted once', async () => {
    const state = {
      etag: '"1"',
      body: {},
      headers: { 'x-version': 'a', 'retry-after': '9', 'x-calls-left': '0', 'x-calls-reset': '9' },
    };
    const server = await serve(versioned(state));
    const rateLimit = [{ remaining: 'x-calls-left', reset: 'x-calls-reset', resetAs: undefined }];
    const connection = connect({ baseUrl: server.origin, rateLimit });
    expect(replied(await connection.perform(poll(), {})).retryAfterMs).toBe(9000);
    Object.assign(state, { headers: { 'x-new': 'b' } });
    const { response, ...reply } = replied(await connection.perform(poll(), {}));
    expect(response.headers).toMatchObject({ 'x-version': 'a', 'x-new': 'b', etag: '"1"' });
    expect(response.headers).not.toHaveProperty('x-calls-left');
    expect(reply).not.toHaveProperty('retryAfterMs');
  });

  test('stays within what the next step may read', async () => {
    const server = await serve(versioned({ etag: '"1"', body: 'x'.repeat(100) }));
    const connection = connect({ baseUrl: server.origin });
    replied(await connection.perform(poll({ read: 'text' }), {}));
    const small = await connection.perform(poll({ read: 'text' }), {}, { maxBytes: 10 });
    expect(failed(small).code).toBe('too_large');
  });
});

describe('a remembered reply is never given', () => {
  test('to another credential', async () => {
    const server = await serve(versioned({ etag: '"1"', body: {} }));
    const secrets = { TOKEN: 'one' };
    const connection = connect(
      { baseUrl: server.origin, auth: { kind: 'bearer', token: text`${'secrets.TOKEN'}` } },
      credentials(secrets),
    );
    await connection.perform(poll(), {});
    secrets.TOKEN = 'two';
    await connection.perform(poll(), {});
    expect(server.seen[1]?.headers).not.toHaveProperty('if-none-match');
    secrets.TOKEN = 'one';
    await connection.perform(poll(), {});
    expect(server.seen[2]?.headers['if-none-match']).toBe('"1"');
  });

  test.each<[string, Partial<HttpStep>]>([
    ['another URL', { target: { kind: 'path', path: text`/job?page=2` } }],
    ['other headers', { headers: [{ name: 'Accept', value: fixed('text/plain') }] }],
  ])('for %s', async (_what, other) => {
    const server = await serve(versioned({ etag: '"1"', body: {} }));
    const connection = connect({ baseUrl: server.origin });
    await connection.perform(poll(), {});
    await connection.perform(poll(other), {});
    expect(server.seen[1]?.headers).not.toHaveProperty('if-none-match');
  });

  test('after the upstream has said something else', async () => {
    const server = await serve(versioned({ etag: '"1"', body: {} }));
    const connection = connect({ baseUrl: server.origin });
    await connection.perform(poll(), {});
    server.handle((_request, response) => json(response, 503, {}, { etag: '"1"' }));
    expect(replied(await connection.perform(poll(), {})).response.status).toBe(503n);
    await connection.perform(poll(), {});
    expect(server.seen[2]?.headers).not.toHaveProperty('if-none-match');
  });

  test.each([{}, { etag: '"1"', 'cache-control': 'private, no-store' }])(
    'when it may not be kept (%j)',
    async (headers) => {
      const server = await serve((_request, response) => json(response, 200, {}, headers));
      const connection = connect({ baseUrl: server.origin });
      for (let n = 0; n < 2; n++) await connection.perform(poll(), {});
      expect(server.seen[1]?.headers).not.toHaveProperty('if-none-match');
    },
  );
});

test('a 304 that nobody asked for is a reply like any other', async () => {
  const server = await serve((_request, response) => void response.writeHead(304).end());
  const reply = replied(await connect({ baseUrl: server.origin }).perform(poll(), {}));
  expect(reply).toMatchObject({ ok: false, response: { status: 304n, body: null } });
});

describe('what is remembered', () => {
  const entry = (bytes: number): Remembered => ({ etag: '"1"', headers: {}, body: Buffer.alloc(bytes) });

  test('is bounded in bytes, and what was not used for longest goes first', () => {
    const cache = createEtagCache(10_000);
    for (const key of ['a', 'b', 'c']) cache.set(key, entry(2000));
    cache.get('a');
    cache.set('d', entry(2000));
    expect(['a', 'b', 'c', 'd'].filter((key) => cache.get(key))).toEqual(['a', 'c', 'd']);
    cache.set('a', entry(9999));
    expect(['a', 'c', 'd'].filter((key) => cache.get(key))).toEqual(['c', 'd']);
    cache.set('c', entry(8000));
    expect(['c', 'd'].filter((key) => cache.get(key))).toEqual(['c']);
  });

  test('counts what small entries take beside their bodies', () => {
    const cache = createEtagCache(10_000);
    for (let n = 0; n < 100; n++) cache.set(String(n), entry(0));
    expect(Array.from({ length: 100 }, (_, n) => cache.get(String(n))).filter(Boolean).length).toBeLessThan(
      10,
    );
  });
});
