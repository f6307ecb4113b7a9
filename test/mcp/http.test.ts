import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { StoreError } from '../../src/errors.ts';
import { createHttpApp } from '../../src/mcp/http.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { modernRequest } from '../helpers/mcp-request.ts';
import { recordedLog } from '../helpers/recorded-log.ts';
import { useServer } from './fixture.ts';

const { server } = useServer();

/** A request whose Host header can be chosen, which fetch does not allow. */
function send(
  path: string,
  headers: { [name: string]: string },
  body?: string,
): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(server().url);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { hostname, port, path, method: body === undefined ? 'GET' : 'POST', headers },
      (reply) => {
        let text = '';
        reply.on('data', (chunk) => {
          text += chunk;
        });
        reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text }));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const list = modernRequest('tools/list', {});
const post = (headers: { [name: string]: string }) =>
  send('/mcp', { ...list.headers, ...headers }, list.body);

describe('/mcp', () => {
  it.each(['localhost:1234', '127.0.0.1', '[::1]:80'])('answers requests addressed to %s', async (host) => {
    expect((await post({ host })).status).toBe(200);
  });

  it.each(['evil.example', '169.254.169.254', 'localhost.evil.example'])(
    'refuses requests addressed to %s, as a page that rebinds its name would send them',
    async (host) => {
      const { status, text } = await post({ host });
      expect(status).toBe(403);
      expect(JSON.parse(text).error.message).toContain('Host');
    },
  );

  it.each(['https://evil.example', 'null', 'http://localhost.evil.example'])(
    'refuses pages of the origin %s',
    async (origin) => {
      expect((await post({ origin })).status).toBe(403);
    },
  );

  it('answers pages of this machine', async () => {
    expect((await post({ origin: 'http://localhost:8080' })).status).toBe(200);
  });

  it('answers a body that is no JSON as JSON-RPC', async () => {
    const { status, text } = await send('/mcp', list.headers, '{"jsonrpc": ');
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32700 } });
  });

  it('refuses a body over 4 MiB', async () => {
    const { status, text } = await send(
      '/mcp',
      list.headers,
      JSON.stringify({ fill: 'x'.repeat(4 * 1024 * 1024) }),
    );
    expect(status).toBe(413);
    expect(JSON.parse(text).error.message).toBe('Request body too large');
  });

  it('refuses the session methods of 2025', async () => {
    expect((await send('/mcp', {})).status).toBe(405);
  });
});

describe('pages for operators', () => {
  it.each([
    ['/healthz', 'ok\n'],
    ['/readyz', 'ready\n'],
  ])('%s answers whatever the host is called', async (path, text) => {
    expect(await send(path, { host: 'pod-7.internal' })).toEqual({ status: 200, text });
  });

  it('/metrics shows tasks without their ids', async () => {
    const { status, text } = await send('/metrics', {});
    expect(status).toBe(200);
    expect(text).toMatch(/^# TYPE taskferry_tasks gauge$/m);
    expect(text).not.toMatch(/[0-9a-v]{36}/);
  });

  it('names the MCP path on every other one', async () => {
    expect(await send('/', {})).toEqual({ status: 404, text: 'not found: MCP is served at /mcp\n' });
  });
});

describe('when the store fails', () => {
  const full = new StoreError('store_full', 'there is no space left', { fix: 'Free some disk space.' });
  const { log, lines } = recordedLog();
  const close: (() => void)[] = [];
  afterEach(() => {
    for (const end of close.splice(0)) end();
  });

  async function page(path: string): Promise<{ status: number; text: string }> {
    const metrics = createMetrics();
    metrics.countTasks(() => Promise.reject(full));
    const app = createHttpApp({
      fetch: async () => new Response(),
      hosts: ['127.0.0.1'],
      origins: [],
      requestBytes: 1_000,
      ready: () => Promise.reject(full),
      metrics,
      log,
      stopping: new AbortController().signal,
    });
    const http = createServer(app);
    close.push(() => http.close());
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    const reply = await fetch(`http://127.0.0.1:${(http.address() as AddressInfo).port}${path}`);
    return { status: reply.status, text: await reply.text() };
  }

  it('/metrics answers a plain 500, and the log tells why', async () => {
    const stderr = vi.spyOn(console, 'error');
    expect(await page('/metrics')).toEqual({ status: 500, text: 'internal error\n' });
    expect(lines).toEqual([
      { level: 'error', err: full, path: '/metrics', message: 'an HTTP request failed' },
    ]);
    expect(stderr).not.toHaveBeenCalled();
    stderr.mockRestore();
  });

  it('/readyz says what to do about it', async () => {
    expect(await page('/readyz')).toEqual({
      status: 503,
      text: 'not ready: there is no space left (Free some disk space.)\n',
    });
  });
});

describe('a body with far more values than any client sends', () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, {}]));
  const answers = { method: 'tasks/update', params: { taskId: 'x', inputResponses: many } };
  const beside = /^Invalid request: more than 5000 values beside params.arguments$/;
  const list = Array.from({ length: 150_000 }, () => 1);

  it.each([
    ['capabilities', { params: { name: 'greet', _meta: { caps: { extensions: many } } } }, beside],
    ['answers', answers, beside],
    ['further members', { more: many }, beside],
    ['requests in one body', Object.values(many), beside],
    [
      'arguments',
      { params: { name: 'greet', arguments: { list } } },
      /^Invalid request: params.arguments holds more than 100000 values$/,
    ],
  ])('is refused for its %s', async (_, part, message) => {
    const whole = Array.isArray(part) ? part : { jsonrpc: '2.0', id: 7, method: 'tools/call', ...part };
    const { status, text } = await send(
      '/mcp',
      modernRequest('tools/call', {}).headers,
      JSON.stringify(whole),
    );
    expect(status).toBe(400);
    const { id, error } = JSON.parse(text);
    expect(id).toBe(Array.isArray(part) ? null : 7);
    expect(error).toEqual({ code: -32600, message: expect.stringMatching(message) });
  });
});

it('refuses bodies nested so deep that looking at them could end the process', async () => {
  const deep = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}}`;
  const { status, text } = await send('/mcp', list.headers, deep);
  expect(status).toBe(400);
  expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', error: { code: -32600 } });
});
