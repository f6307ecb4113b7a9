// Redirects that a step follows: how far, to whom, and what is sent along.

import type { LookupFunction } from 'node:net';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createBudget } from '../../../src/drivers/budget.ts';
import { redirected } from '../../../src/drivers/http/redirects.ts';
import type { Handler } from '../../helpers/http-server.ts';
import { json } from '../../helpers/http-server.ts';
import { fixed, text, value } from '../../helpers/templates.ts';
import { connect, credentials, failed, postJob, replied, serve, step } from './fixture.ts';

const follow = (rest: Parameters<typeof step>[1] = {}) => step(text`/start`, { redirects: 3, ...rest });

const to =
  (location: string, status = 302): Handler =>
  (_request, response) =>
    void response.writeHead(status, { location }).end('<html>moved</html>');

/** `/start` redirects as told, anything else says what was asked for. */
function redirecting(location: string, status = 302): Handler {
  return (request, response, raw) =>
    request.url.startsWith('/start')
      ? to(location, status)(request, response, raw)
      : json(response, 200, { at: request.url });
}

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])('%i is followed, and response.url is where it led', async (status) => {
    const server = await serve(redirecting('/log/7?part=1', status));
    const { response, ok } = replied(await connect({ baseUrl: server.origin }).perform(follow(), {}));
    expect(ok).toBe(true);
    expect(response).toMatchObject({
      status: 200n,
      body: { at: '/log/7?part=1' },
      url: `${server.origin}/log/7?part=1`,
    });
  });

  test('is a reply like any other as long as the step does not say how many it follows', async () => {
    const server = await serve(to('/log'));
    const reply = replied(await connect({ baseUrl: server.origin }).perform(follow({ redirects: 0 }), {}));
    expect(reply.response.status).toBe(302n);
    expect(server.seen).toHaveLength(1);
  });

  test('without a Location is a reply like any other', async () => {
    const server = await serve((_request, response) => void response.writeHead(302).end());
    const reply = replied(await connect({ baseUrl: server.origin }).perform(follow({ read: 'none' }), {}));
    expect(reply).toMatchObject({ ok: false, response: { status: 302n } });
  });

  test('may lead on as often as the step says, and not once more', async () => {
    const server = await serve((request, response, raw) => {
      const n = Number(/\d+$/.exec(request.url)?.[0] ?? 0);
      if (n < 3) to(`/hop/${n + 1}`)(request, response, raw);
      else json(response, 200, 'true');
    });
    const connection = connect({ baseUrl: server.origin });
    expect(replied(await connection.perform(follow(), {})).response.body).toBe(true);
    const { code, reason, sent } = failed(await connection.perform(follow({ redirects: 2 }), {}));
    expect({ code, sent }).toEqual({ code: 'invalid_request', sent: true });
    expect(reason).toBe('there are more redirects than the 2 that the step follows');
  });

  test('that leads round in a circle is a failure at once', async () => {
    const server = await serve((request, response, raw) =>
      to(request.url === '/start' ? '/a' : '/start')(request, response, raw),
    );
    const { reason } = failed(
      await connect({ baseUrl: server.origin }).perform(follow({ redirects: 5 }), {}),
    );
    expect(reason).toBe('the redirects go round in a circle');
    expect(server.seen.map(({ url }) => url)).toEqual(['/start', '/a']);
  });

  test.each([
    ['http://evil.test/x', 'neither the upstream nor in allowHosts'],
    ['http://169.254.169.254/latest', 'neither the upstream nor in allowHosts'],
    ['ftp://127.0.0.1/x', 'no http or https URL'],
    ['javascript:1', 'no http or https URL'],
    ['http://', 'no http or https URL'],
  ])('to %s is not followed', async (location, why) => {
    const server = await serve(to(location));
    const failure = failed(await connect({ baseUrl: server.origin }).perform(follow(), {}));
    expect(failure).toMatchObject({ code: 'invalid_request', sent: true });
    expect(failure.reason).toContain(why);
  });

  test('that names a user and a password is not followed', async () => {
    const server = await serve((request, response, raw) =>
      to(`http://user:pass@${request.headers.host}/x`)(request, response, raw),
    );
    const { reason } = failed(await connect({ baseUrl: server.origin }).perform(follow(), {}));
    expect(reason).toContain('user name or password');
    expect(reason).not.toContain('pass@');
  });

  test('to a host that only a wildcard admits is followed to public addresses only', async () => {
    const inside = await serve();
    const server = await serve(to(`http://a.blob.test:${inside.port}/x`));
    const lookup: LookupFunction = (_host, { all }, callback) =>
      all ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4);
    const allowHosts = [`*.blob.test:${inside.port}`];
    const connection = connect({ baseUrl: server.origin, allowHosts }, credentials(), { lookup });
    const failure = failed(await connection.perform(follow(), {}));
    expect(failure).toMatchObject({ code: 'connect', sent: true });
    expect(inside.sockets.size).toBe(0);
  });

  test('takes a place in the budget for every request', async () => {
    const budget = createBudget({ concurrency: 1, rate: { calls: 2, perMs: 60_000 } }, systemClock);
    const server = await serve(redirecting('/log'));
    const connection = connect({ baseUrl: server.origin }, { ...credentials(), budget });
    replied(await connection.perform(follow(), {}));
    expect(budget.free()).toBe(0);
  });
});

describe('what a redirect takes along', () => {
  const secrets = { TOKEN: 'sk-fake-0123456789' };
  const parts = (origin: string, allowHosts: string[] = []) => ({
    baseUrl: origin,
    allowHosts,
    auth: { kind: 'bearer', token: text`${'secrets.TOKEN'}` } as const,
    headers: [{ name: 'X-Api-Version', value: fixed('2') }],
    query: [{ name: 'tenant', value: fixed('t1') }],
  });
  const own = [
    { name: 'X-Secret', value: text`${'secrets.TOKEN'}` },
    { name: 'Cookie', value: fixed('session=abc') },
    { name: 'Range', value: fixed('bytes=0-9') },
  ];

  test('on the upstream itself, everything', async () => {
    const server = await serve(redirecting('/log'));
    await connect(parts(server.origin), credentials(secrets)).perform(follow({ headers: own }), {});
    const [, second] = server.seen;
    expect(second?.url).toBe('/log?tenant=t1');
    expect(second?.headers).toMatchObject({
      authorization: 'Bearer sk-fake-0123456789',
      'x-api-version': '2',
      'x-secret': 'sk-fake-0123456789',
      cookie: 'session=abc',
      range: 'bytes=0-9',
    });
  });

  test('to another host, no credential, no cookie and no header that reads a secret', async () => {
    const storage = await serve((_request, response) => json(response, 200, { log: 'x' }));
    const server = await serve(to(`${storage.origin}/blob?sig=abc`));
    const connection = connect(parts(server.origin, [`127.0.0.1:${storage.port}`]), credentials(secrets));
    const { response } = replied(await connection.perform(follow({ headers: own }), {}));
    expect(response.body).toEqual({ log: 'x' });
    const [seen] = storage.seen;
    expect(seen?.url).toBe('/blob?sig=abc');
    expect(seen?.headers).toMatchObject({ range: 'bytes=0-9' });
    for (const name of ['authorization', 'x-secret', 'cookie', 'x-api-version'])
      expect(seen?.headers).not.toHaveProperty(name);
  });

  test('back from another host, no cookie of the first request', async () => {
    const storage = await serve();
    const server = await serve(redirecting(`${storage.origin}/blob`));
    storage.handle(to(`${server.origin}/back`));
    const connection = connect(parts(server.origin, [`127.0.0.1:${storage.port}`]), credentials(secrets));
    replied(await connection.perform(follow({ headers: own }), {}));
    expect(server.seen[1]?.headers.authorization).toBe('Bearer sk-fake-0123456789');
    expect(server.seen[1]?.headers.cookie).toBeUndefined();
  });

  test('never a secret that the upstream repeats in the address of another host', async () => {
    const storage = await serve();
    const server = await serve(to(`${storage.origin}/x?next=sk%2Dfake-0123456789`));
    const connection = connect(parts(server.origin, [`127.0.0.1:${storage.port}`]), {
      ...credentials(secrets),
      redact: (shown) => shown.replaceAll(secrets.TOKEN, '[redacted]'),
    });
    const { reason } = failed(await connection.perform(follow(), {}));
    expect(reason).toBe('the redirect would carry a secret to another host');
    expect(storage.seen).toEqual([]);
  });

  test('from https to plain http, nothing, whatever allowHosts says', () => {
    const hop = { step: follow(), url: 'https://api.test/x', status: 302 };
    expect(() => redirected({ ...hop, headers: { location: 'http://api.test:80/' } }, (s) => s)).toThrow(
      'from https to plain http',
    );
  });
});

describe('a redirect after a request that changes something', () => {
  const post = { ...postJob, redirects: 2 };
  const idempotency = { headers: { 'Idempotency-Key': 'k-1' } };

  test('303 is followed by a GET without the body', async () => {
    const server = await serve((request, response, raw) =>
      request.method === 'POST' ? to('/jobs/7', 303)(request, response, raw) : json(response, 200, { id: 7 }),
    );
    const body = { kind: 'json', value: value({ a: 1n }) } as const;
    const headers = [{ name: 'Content-Language', value: fixed('en') }];
    const connection = connect({ baseUrl: server.origin });
    const reply = replied(await connection.perform({ ...post, body, headers }, {}, idempotency));
    expect(reply.response.body).toEqual({ id: 7n });
    const [, second] = server.seen;
    expect(second).toMatchObject({ method: 'GET', url: '/jobs/7', body: '' });
    for (const name of ['content-type', 'content-language', 'idempotency-key'])
      expect(second?.headers).not.toHaveProperty(name);
  });

  test.each([301, 302, 307, 308])('%i is not followed', async (status) => {
    const server = await serve(to('/jobs/7', status));
    const step = { ...post, read: 'none' } as const;
    const reply = replied(await connect({ baseUrl: server.origin }).perform(step, {}));
    expect(reply.response.status).toBe(BigInt(status));
    expect(server.seen).toHaveLength(1);
  });

  test.each([404, 401, 429, 503])(
    'leaves a doubt when the page behind it answers with %i: the request itself was heard',
    async (status) => {
      const server = await serve((request, response, raw) =>
        request.method === 'POST' ? to('/jobs/7', 303)(request, response, raw) : json(response, status, {}),
      );
      const context = { ...credentials(), refreshSecrets: () => true };
      const failure = failed(await connect({ baseUrl: server.origin }, context).perform(post, {}));
      expect(failure).toMatchObject({ code: 'reset', sent: true });
      expect(failure.reason).toBe(
        `the redirect led to 127.0.0.1:${server.port}, which answered with HTTP ${status}`,
      );
      expect(server.seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
    },
  );

  test('leaves a doubt when the host behind it refuses connections', async () => {
    const gone = await serve();
    await gone.close();
    const server = await serve(to(`${gone.origin}/x`, 303));
    const connection = connect({ baseUrl: server.origin, allowHosts: [`127.0.0.1:${gone.port}`] });
    expect(failed(await connection.perform(post, {}))).toMatchObject({ code: 'connect', sent: true });
  });
});
