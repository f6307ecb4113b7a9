// What goes wrong on the network: codes, whether the request went out, sockets, and the one retry.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { json } from '../../helpers/http-server.ts';
import { text } from '../../helpers/templates.ts';
import { connect, credentials, failed, getJob, postJob, replied, serve, step } from './fixture.ts';

/** A server of raw bytes; closed with the test. */
async function serveRaw(onSocket: (socket: Socket, count: number) => void): Promise<string> {
  let count = 0;
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => {});
    onSocket(socket, ++count);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const times = (ms: number) => ({ connect: ms, headers: ms, body: ms });

describe('the request never went out', () => {
  test('when nobody listens', async () => {
    const result = failed(await connect({ baseUrl: 'http://127.0.0.1:1' }).perform(postJob, {}));
    expect(result).toEqual({
      kind: 'failed',
      code: 'connect',
      sent: false,
      reason: '127.0.0.1:1 refuses connections',
    });
  });

  test('when the name is not known', async () => {
    const lookup = (
      _host: string,
      _options: unknown,
      callback: (error: NodeJS.ErrnoException, address: string, family: number) => void,
    ): void => callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), '', 0);
    const connection = connect({ baseUrl: 'http://nobody.test/x?' }, credentials(), { lookup });
    expect(failed(await connection.perform(postJob, {}))).toMatchObject({ code: 'connect', sent: false });
    expect(failed(await connection.perform(postJob, {})).reason).toContain(
      "nobody.test:80 can't be resolved",
    );
  });

  test('when the connection does not come about in time', async () => {
    // A resolver that never answers, so that this needs no network.
    const lookup = (_host: string, _options: unknown, _callback: unknown): void => {};
    const connection = connect({ baseUrl: 'http://slow.test', timeouts: times(100) }, credentials(), {
      lookup,
    });
    expect(failed(await connection.perform(postJob, {}))).toEqual({
      kind: 'failed',
      code: 'connect',
      sent: false,
      reason: 'no connection to slow.test:80 within 100ms',
    });
  });

  test('when the other side speaks no TLS', async () => {
    const origin = await serveRaw((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const connection = connect({ baseUrl: origin.replace('http:', 'https:') });
    expect(failed(await connection.perform(postJob, {}))).toMatchObject({ code: 'connect', sent: false });
  });

  test('when it was given up before', async () => {
    const server = await serve();
    const result = failed(
      await connect({ baseUrl: server.origin }).perform(postJob, {}, { signal: AbortSignal.abort() }),
    );
    expect(result).toMatchObject({ code: 'aborted', sent: false });
    expect(server.seen).toEqual([]);
  });
});

describe('the request may have gone out', () => {
  test('when no answer starts in time, and the socket is freed', async () => {
    const server = await serve(() => {});
    const connection = connect({ baseUrl: server.origin, timeouts: times(100) });
    expect(failed(await connection.perform(postJob, {}))).toEqual({
      kind: 'failed',
      code: 'timeout',
      sent: true,
      reason: `127.0.0.1:${server.port} did not answer within 100ms`,
    });
    await server.waitFor(1);
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test('when a GET on a kept-alive socket is not answered in time it is not repeated', async () => {
    const server = await serve();
    const connection = connect({ baseUrl: server.origin, timeouts: times(500) });
    replied(await connection.perform(getJob, {}));
    server.handle(() => {});
    expect(failed(await connection.perform(getJob, {})).code).toBe('timeout');
    expect(server.seen).toHaveLength(2);
  });

  test('when the reply stops in the middle', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"a":');
    });
    const result = failed(
      await connect({ baseUrl: server.origin, timeouts: times(300) }).perform(getJob, {}),
    );
    expect(result).toMatchObject({ code: 'timeout', sent: true });
    expect(result.reason).toContain('fell silent for 300ms in the middle');
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test('when the body drips in for ever', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(timer));
    });
    const started = performance.now();
    const result = failed(
      await connect({ baseUrl: server.origin, timeouts: times(400) }).perform(getJob, {}),
    );
    expect(result).toMatchObject({ code: 'timeout', sent: true });
    expect(result.reason).toContain('too long to send its whole reply');
    expect(performance.now() - started).toBeGreaterThanOrEqual(1590);
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test.each([
    ['the headers drip in', 'x'],
    ['interim replies come for ever', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ])('when %s', async (_case, piece) => {
    const origin = await serveRaw((socket) => {
      socket.once('data', () => {
        if (piece === 'x') socket.write('HTTP/1.1 200 OK\r\nX-Slow: ');
        const timer = setInterval(() => socket.write(piece), 20);
        socket.on('close', () => clearInterval(timer));
      });
    });
    expect(
      failed(await connect({ baseUrl: origin, timeouts: times(400) }).perform(getJob, {})),
    ).toMatchObject({
      code: 'timeout',
      sent: true,
    });
  });

  test.each([
    ['before the reply', ''],
    ['in its headers', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['in a body of known length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"a"'],
    ['in a chunked body', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n'],
  ])('when the connection closes %s', async (_where, bytes) => {
    for (const how of ['end', 'reset']) {
      const origin = await serveRaw((socket) => {
        socket.once('data', () => {
          if (how === 'end') socket.end(bytes);
          else socket.write(bytes, () => socket.resetAndDestroy());
        });
      });
      const result = failed(await connect({ baseUrl: origin }).perform(postJob, {}));
      expect(result).toMatchObject({ code: 'reset', sent: true });
      expect(result.reason).toContain(
        `${new URL(origin).host} closed the connection before its reply was complete`,
      );
    }
  });

  test('when what comes is not HTTP', async () => {
    const origin = await serveRaw(
      (socket) => void socket.once('data', () => socket.end('220 mail.test ESMTP\r\n')),
    );
    expect(failed(await connect({ baseUrl: origin }).perform(postJob, {}))).toMatchObject({
      code: 'reset',
      sent: true,
    });
  });

  test('when the headers are too many', async () => {
    const origin = await serveRaw(
      (socket) =>
        void socket.once('data', () =>
          socket.end(`HTTP/1.1 200 OK\r\nX-Big: ${'x'.repeat(100_000)}\r\n\r\n`),
        ),
    );
    expect(failed(await connect({ baseUrl: origin }).perform(postJob, {}))).toMatchObject({
      code: 'too_large',
      sent: true,
    });
  });

  test('when it is given up while it is under way', async () => {
    const server = await serve(() => {});
    const giveUp = new AbortController();
    const reply = connect({ baseUrl: server.origin }).perform(postJob, {}, { signal: giveUp.signal });
    await server.waitFor(1);
    giveUp.abort();
    expect(failed(await reply)).toMatchObject({ code: 'aborted', sent: true });
    await expect.poll(() => server.sockets.size).toBe(0);
  });
});

test('a process that was stalled does not take a reply that came meanwhile for silence', async () => {
  const server = await serve((_request, response) => {
    json(response, 200, { a: 1 });
    const until = performance.now() + 600;
    while (performance.now() < until);
  });
  const reply = await connect({ baseUrl: server.origin, timeouts: times(300) }).perform(postJob, {});
  expect(replied(reply).response.body).toEqual({ a: 1n });
});

test('a body that ends with the connection is whole', async () => {
  const origin = await serveRaw(
    (socket) => void socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\n{"a":1}')),
  );
  expect(replied(await connect({ baseUrl: origin }).perform(getJob, {})).response.body).toEqual({ a: 1n });
});

test('a broken body does not hide an error status', async () => {
  const origin = await serveRaw(
    (socket) =>
      void socket.once('data', () => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n{"a"')),
  );
  const { response, unreadable } = replied(await connect({ baseUrl: origin }).perform(getJob, {}));
  expect(response.status).toBe(404n);
  expect(unreadable).toContain('could not be read to its end');
});

describe('a kept-alive socket', () => {
  test('is used again', async () => {
    const server = await serve();
    const connection = connect({ baseUrl: server.origin });
    for (const _time of [1, 2, 3]) replied(await connection.perform(getJob, {}));
    expect(server.seen.map(({ connection: number }) => number)).toEqual([1, 1, 1]);
  });

  /** Answers the first request of the first connection, and closes that one on its second. */
  const closesOnSecondUse = (requests: string[], alwaysReset = false): Promise<string> =>
    serveRaw((socket, count) => {
      let uses = 0;
      socket.on('data', (data) => {
        requests.push(String(data).split(' ')[0] ?? '');
        if ((alwaysReset && count > 1) || (++uses === 2 && count === 1)) socket.resetAndDestroy();
        else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
      });
    });

  test.each(['GET', 'HEAD'] as const)('that was closed meanwhile is replaced once for %s', async (method) => {
    const requests: string[] = [];
    const connection = connect({ baseUrl: await closesOnSecondUse(requests) });
    replied(await connection.perform(getJob, {}));
    replied(await connection.perform(step(text`/job`, { method }), {}));
    expect(requests).toEqual(['GET', method, method]);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'] as const)(
    'that was closed meanwhile is never replaced for %s',
    async (method) => {
      const requests: string[] = [];
      const connection = connect({ baseUrl: await closesOnSecondUse(requests) });
      replied(await connection.perform(getJob, {}));
      expect(failed(await connection.perform(step(text`/job`, { method }), {}))).toMatchObject({
        code: 'reset',
        sent: true,
      });
      expect(requests).toEqual(['GET', method]);
    },
  );

  test('is replaced once only', async () => {
    const requests: string[] = [];
    const connection = connect({ baseUrl: await closesOnSecondUse(requests, true) });
    replied(await connection.perform(getJob, {}));
    expect(failed(await connection.perform(getJob, {}))).toMatchObject({ code: 'reset', sent: true });
    expect(requests).toEqual(['GET', 'GET', 'GET']);
  });

  test('is the only one that is replaced: a reset on a new socket is a failure', async () => {
    let connections = 0;
    const origin = await serveRaw((socket) => {
      connections++;
      socket.once('data', () => socket.resetAndDestroy());
    });
    expect(failed(await connect({ baseUrl: origin }).perform(getJob, {})).code).toBe('reset');
    expect(connections).toBe(1);
  });

  test('of a cut-off reply is not used again', async () => {
    const server = await serve((_request, response) => json(response, 200, 'x'.repeat(1000)));
    const connection = connect({ baseUrl: server.origin });
    failed(await connection.perform(getJob, {}, { maxBytes: 10 }));
    replied(await connection.perform(getJob, {}, { maxBytes: 2000 }));
    expect(server.seen.map(({ connection: number }) => number)).toEqual([1, 2]);
  });
});

describe('close', () => {
  test('closes idle sockets and ends what is under way', async () => {
    const server = await serve();
    const connection = connect({ baseUrl: server.origin });
    replied(await connection.perform(getJob, {}));
    server.handle(() => {});
    const hanging = connection.perform(postJob, {});
    await server.waitFor(2);
    await connection.close();
    expect(failed(await hanging)).toMatchObject({ code: 'aborted', sent: true });
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test('refuses what comes later', async () => {
    const server = await serve();
    const connection = connect({ baseUrl: server.origin });
    await connection.close();
    expect(failed(await connection.perform(getJob, {}))).toMatchObject({ code: 'aborted', sent: false });
    expect(server.seen).toEqual([]);
  });
});

test('a hundred failures of every kind leave no socket behind', async () => {
  const server = await serve((request, response) => {
    if (request.url.endsWith('0')) return;
    if (request.url.endsWith('1')) return void response.destroy();
    if (request.url.endsWith('2')) return void response.write('x');
    json(response, 500, 'x'.repeat(2000));
  });
  const connection = connect({ baseUrl: server.origin, timeouts: times(2000), maxBytes: 1000 });
  await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      connection.perform(step(text`/${'job.n'}`), { job: { n: BigInt(index) } }),
    ),
  );
  await server.waitFor(100);
  await expect.poll(() => server.sockets.size).toBe(0);
});
