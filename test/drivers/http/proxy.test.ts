// Proxies: which one applies, tunnels and forwarded requests through a real little proxy, and the address check.

import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { guardedConnector, tunnelConnector } from '../../../src/drivers/http/connectors.ts';
import { proxyAuthorization, proxyFor } from '../../../src/drivers/http/proxy.ts';
import { fixed } from '../../helpers/templates.ts';
import { connect, credentials, failed, follow, getJob, postJob, replied, serve } from './fixture.ts';
import { serveProxy, type TestProxy } from './proxy-server.ts';

describe('which proxy applies', () => {
  const env = { HTTPS_PROXY: 'http://p.test:1', HTTP_PROXY: 'p.test:2' };
  const chosen = (url: string, extra: { [name: string]: string } = {}): string | undefined =>
    proxyFor(new URL(url), undefined, { ...env, ...extra })?.href;

  test('goes by the scheme', () => {
    expect(chosen('https://api.test/')).toBe('http://p.test:1/');
    expect(chosen('http://api.test/')).toBe('http://p.test:2/');
    expect(chosen('https://api.test/', { https_proxy: 'https://q.test' })).toBe('https://q.test/');
    expect(proxyFor(new URL('https://api.test/'), undefined, {})).toBeUndefined();
  });

  test.each(['http://localhost:8080/', 'http://127.0.0.1/', 'http://127.9.9.9/', 'http://[::1]:80/'])(
    'never is one for %s, which is this machine',
    (url) => {
      expect(chosen(url)).toBeUndefined();
    },
  );

  test.each([
    ['*', true],
    ['api.test', true],
    ['other.test, api.test', true],
    ['other.test api.test', true],
    ['.test', true],
    ['*.test', true],
    ['API.TEST', true],
    ['api.test:443', true],
    ['api.test:8443', false],
    ['pi.test', false],
    ['', false],
  ])('NO_PROXY %j exempts api.test: %s', (list, exempt) => {
    expect(chosen('https://api.test/', { NO_PROXY: list }) === undefined).toBe(exempt);
  });

  test.each([
    ['10.0.0.0/8', 'http://10.1.2.3/', true],
    ['10.0.0.0/8', 'http://11.1.2.3/', false],
    ['10.1.2.3', 'http://10.1.2.3/', true],
    ['fd00::/8', 'http://[fd12::1]/', true],
    ['[fd12::1]', 'http://[fd12::1]/', true],
    ['2.3', 'http://10.1.2.3/', false],
    ['10.0.0.0/99', 'http://10.1.2.3/', false],
  ])('NO_PROXY %j exempts %s: %s', (list, url, exempt) => {
    expect(chosen(url, { NO_PROXY: list }) === undefined).toBe(exempt);
  });

  test('is the configured one whatever the environment says', () => {
    const url = new URL('http://127.0.0.1:1/');
    expect(proxyFor(url, 'http://mine.test:3128', { NO_PROXY: '*' })?.href).toBe('http://mine.test:3128/');
  });

  test('must be http or https, and is not repeated in the error', () => {
    const act = (): unknown => proxyFor(new URL('https://a.test'), 'socks5://user:pw@p.test', {});
    expect(act).toThrow('upstream.proxy is not the URL of an http or https proxy');
  });

  test('gets the user of its URL', () => {
    expect(proxyAuthorization(new URL('http://us%40er:p%3Aw@p.test'))).toBe(`Basic ${btoa('us@er:p:w')}`);
    expect(proxyAuthorization(new URL('http://p.test'))).toBeUndefined();
  });
});

describe('http through a proxy', () => {
  test('is a request for the absolute URL, with the credentials of both', async () => {
    const server = await serve();
    const proxy = await serveProxy();
    const connection = connect({
      // Nobody resolves this name: that is the proxy's business.
      baseUrl: `http://upstream.test:${server.port}/v1`,
      proxy: fixed(proxy.url.replace('//', '//user:pw@')),
      auth: { kind: 'query', name: 'key', value: fixed('k') },
    });
    expect(replied(await connection.perform(postJob, {})).response.url).toBe(
      `http://upstream.test:${server.port}/v1/jobs`,
    );
    expect(proxy.seen).toEqual([
      {
        method: 'POST',
        target: `http://upstream.test:${server.port}/v1/jobs?key=k`,
        authorization: `Basic ${btoa('user:pw')}`,
        host: `upstream.test:${server.port}`,
      },
    ]);
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      url: '/v1/jobs?key=k',
      headers: { host: `upstream.test:${server.port}` },
    });
  });

  test('is found through HTTP_PROXY, and goes around it through NO_PROXY', async () => {
    const server = await serve();
    const proxy = await serveProxy();
    const lookup = (
      _host: string,
      options: { all?: boolean | undefined },
      callback: (error: null, address: never, family: number) => void,
    ): void =>
      callback(null, (options.all ? [{ address: '127.0.0.1', family: 4 }] : '127.0.0.1') as never, 4);
    const parts = { baseUrl: `http://upstream.test:${server.port}` };
    replied(
      await connect(parts, credentials(), { env: { HTTP_PROXY: proxy.url }, lookup }).perform(getJob, {}),
    );
    expect(proxy.seen).toHaveLength(1);
    const env = { HTTP_PROXY: proxy.url, NO_PROXY: 'upstream.test' };
    replied(await connect(parts, credentials(), { env, lookup }).perform(getJob, {}));
    expect(proxy.seen).toHaveLength(1);
    expect(server.seen).toHaveLength(2);
  });

  test('that is down is a connection failure: nothing was sent', async () => {
    const connection = connect({ baseUrl: 'http://upstream.test', proxy: fixed('http://127.0.0.1:1') });
    expect(failed(await connection.perform(postJob, {}))).toMatchObject({ code: 'connect', sent: false });
  });
});

describe('a tunnel', () => {
  const https = (proxy: TestProxy, timeout = 1000) =>
    connect({
      baseUrl: 'https://upstream.test:9',
      proxy: fixed(proxy.url.replace('//', '//user:pw@')),
      timeouts: { connect: timeout, headers: 1000, body: 1000 },
    });

  test('is asked for with the credentials of the proxy', async () => {
    const proxy = await serveProxy((client) => {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return false;
    });
    expect(failed(await https(proxy).perform(postJob, {}))).toEqual({
      kind: 'failed',
      code: 'connect',
      sent: false,
      reason: 'the proxy refused a tunnel to upstream.test:9 (407)',
    });
    expect(proxy.seen).toEqual([
      {
        method: 'CONNECT',
        target: 'upstream.test:9',
        authorization: `Basic ${btoa('user:pw')}`,
        host: 'upstream.test:9',
      },
    ]);
  });

  test.each<[string, (client: Socket) => void, string]>([
    ['is answered by nothing but a close', (client) => client.destroy(), 'closed the connection instead'],
    ['is answered by garbage', (client) => client.end('hello\r\n\r\n'), '(no status)'],
    ['is answered without end', (client) => client.write('x'.repeat(20_000)), 'sent no answer to CONNECT'],
    ['is not answered at all', () => {}, 'did not open a tunnel to upstream.test:9 in time'],
  ])('that %s is a connection failure', async (_case, answer, reason) => {
    const proxy = await serveProxy((client) => {
      answer(client);
      return false;
    });
    const result = failed(await https(proxy, 200).perform(postJob, {}));
    expect(result).toMatchObject({ code: 'connect', sent: false });
    expect(result.reason).toContain(reason);
  });

  test('is used for http too where the host was admitted by a wildcard', async () => {
    const server = await serve();
    const proxy = await serveProxy();
    const connection = connect({ allowHosts: [`*.blob.test:${server.port}`], proxy: fixed(proxy.url) });
    replied(await connection.perform(follow(), { job: { url: `http://a.blob.test:${server.port}/x` } }));
    expect(proxy.seen[0]).toMatchObject({ method: 'CONNECT', target: `a.blob.test:${server.port}` });
    expect(server.seen[0]?.url).toBe('/x');
  });
});

describe('the address check', () => {
  const options = {
    timeout: 1000,
    ca: undefined,
    client: undefined,
    servername: undefined,
    lookup: undefined,
  };
  const target = (hostname: string, port: number) => ({
    hostname,
    host: hostname,
    protocol: 'http:',
    port: String(port),
  });

  test.each(['127.0.0.1', '::ffff:127.0.0.1', '::1', '169.254.169.254'])(
    'refuses the literal %s',
    async (host) => {
      const server = await serve();
      for (const connector of [
        guardedConnector(options),
        tunnelConnector(new URL(server.origin), true, options),
      ]) {
        const error = await new Promise((resolve) =>
          connector(target(host, server.port), (...[failure]) => resolve(failure)),
        );
        expect(String(error)).toContain(`${host} has a private or local address`);
      }
      expect(server.sockets.size).toBe(0);
    },
  );
});
