// URLs that a reply chose: where they may point, and that no credential goes there.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the templates.

import type { LookupFunction } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isPrivateAddress } from '../../../src/drivers/http/addresses.ts';
import type { HttpStep } from '../../../src/drivers/http/compiled.ts';
import { admit } from '../../../src/drivers/http/origins.ts';
import { type BuiltRequest, buildRequest } from '../../../src/drivers/http/request.ts';
import { json } from '../../helpers/http-server.ts';
import { fixed, text, value } from '../../helpers/templates.ts';
import { connect, credentials, failed, follow, replied, serve, step, upstream } from './fixture.ts';

function target(url: string, tail = text`${'job.url'}`, allowHosts: string[] = []): string {
  const parts = upstream({ baseUrl: 'https://api.test/v1', allowHosts });
  return buildRequest(parts, follow({}, tail), { job: { url, id: 'a/b' } }).url.href;
}

describe('a URL out of a reply', () => {
  test.each([
    [
      'https://api.test/queue/item/7/',
      text`${'job.url'}api/json?tree=id`,
      'https://api.test/queue/item/7/api/json?tree=id',
    ],
    ['https://api.test/ops/7?sig=z', text`${'job.url'}/log`, 'https://api.test/ops/7/log?sig=z'],
    ['https://api.test/ops/7?sig=z', text`${'job.url'}?part=1`, 'https://api.test/ops/7?sig=z&part=1'],
    ['https://api.test/ops/7?sig=z', text`${'job.url'}&part=1`, 'https://api.test/ops/7?sig=z&part=1'],
    ['https://api.test/ops/', text`${'job.url'}${'job.id'}`, 'https://api.test/ops/a%2Fb'],
    ['https://api.test', text`${'job.url'}stop`, 'https://api.test/stop'],
    ['https://API.test:443/x#part', text`${'job.url'}/y`, 'https://api.test/x/y'],
  ])('%s is followed, with what the step adds', (url, tail, expected) => {
    expect(target(url, tail)).toBe(expected);
  });

  test.each(['ops/7', '/ops/7', '?op=7', '//other.test/x', 'ftp://api.test/x', 'javascript:1', ''])(
    '%j is refused, as it is not absolute, and the error names it and resolveUrl',
    (url) => {
      expect(() => target(url)).toThrow(`job.url gives ${JSON.stringify(url.replace(/\?.*/, ''))}`);
      expect(() => target(url)).toThrow('resolveUrl');
    },
  );

  test.each([
    'http://169.254.169.254/x',
    'http://[::ffff:127.0.0.1]/',
    'https://api.test.evil.test/',
    'https://evil.test/api.test',
    'https://api.test:8443/',
    'http://api.test/',
    'https://xapi.test/',
  ])('%s is refused, as it is another origin', (url) => {
    expect(() => target(url)).toThrow('neither the upstream nor in allowHosts');
  });

  test.each([
    'https://api.test\\@evil.test/',
    'https://api.test/\n',
    'https://api.test/a b',
    'https://a@api.test/',
    'https://:p@api.test/',
  ])('%j is refused', (url) => {
    expect(() => target(url)).toThrow(/characters|user name/);
  });

  test('a hole behind it can not climb', () => {
    expect(() =>
      buildRequest(upstream({ baseUrl: 'https://api.test' }), follow({}, text`${'job.url'}${'job.id'}`), {
        job: { url: 'https://api.test/a/', id: '..' },
      }),
    ).toThrow('".."');
  });
});

test('whatever a reply gives, only admitted origins are asked, and only the own one gets credentials', () => {
  const pieces = fc.constantFrom(
    'http://',
    'https://',
    '//',
    '/',
    '\\',
    '@',
    ':',
    '#',
    '?',
    '.',
    '%2e',
    '%40',
    '\t',
    ' ',
    '[::1]',
    '127.0.0.1',
    '2130706433',
    'api.test',
    'blob.test',
    'a.cdn.test',
    'evil.test',
    ':443',
    ':8443',
    'user',
    '\u3002',
    'ⓐ',
  );
  const hostile = fc.array(
    fc.oneof({ weight: 5, arbitrary: pieces }, { weight: 1, arbitrary: fc.string() }),
    { maxLength: 7 },
  );
  const schemes = fc.constantFrom(
    'http://',
    'https://',
    'https://api.test',
    'https://api.test/',
    'https://blob.test',
    '',
  );
  const parts = upstream({
    baseUrl: 'https://api.test/v1',
    allowHosts: ['blob.test', '*.cdn.test'],
    auth: { kind: 'header', name: 'X-Key', value: fixed('k') },
  });
  const built = { own: 0, other: 0 };
  fc.assert(
    fc.property(schemes, hostile, (start, rest) => {
      let request: BuiltRequest;
      try {
        request = buildRequest(parts, follow({}, text`${'job.url'}`), {
          job: { url: start + rest.join('') },
        });
      } catch (error) {
        expect((error as Error).name).toBe('RequestFault');
        return;
      }
      const { hostname, port, protocol, username } = request.url;
      expect([protocol, port, username]).toEqual(['https:', '', '']);
      expect(hostname.replace(/\.$/, '')).toMatch(/^(api\.test|blob\.test|([^.]+\.)+cdn\.test)$/);
      expect(request.own).toBe(hostname === 'api.test');
      expect('x-key' in request.headers).toBe(request.own);
      expect(request.guarded).toBe(/cdn\.test\.?$/.test(hostname));
      built[request.own ? 'own' : 'other']++;
    }),
    { numRuns: 5000 },
  );
  expect(built.own).toBeGreaterThan(50);
  expect(built.other).toBeGreaterThan(50);
});

describe('allowHosts', () => {
  const base = new URL('https://api.test/v1');
  test.each([
    ['https://api.test/x', [], 'own'],
    ['https://blob.test/x', ['blob.test'], 'named'],
    ['https://blob.test./x', ['blob.test'], 'named'],
    ['https://BLOB.test/x', ['Blob.Test'], 'named'],
    ['https://blob.test:8443/x', ['blob.test'], undefined],
    ['https://blob.test:8443/x', ['blob.test:8443'], 'named'],
    ['https://blob.test/x', ['blob.test:443'], 'named'],
    ['http://blob.test/x', ['blob.test'], undefined],
    ['http://blob.test/x', ['blob.test:80'], 'named'],
    ['https://a.blob.test/x', ['*.blob.test'], 'wildcard'],
    ['https://a.b.blob.test/x', ['*.blob.test'], 'wildcard'],
    ['https://a.blob.test/x', ['*.blob.test', 'a.blob.test'], 'named'],
    ['https://blob.test/x', ['*.blob.test'], undefined],
    ['https://xblob.test/x', ['*.blob.test'], undefined],
    ['https://10.0.0.1/x', ['*.0.0.1'], undefined],
    ['https://10.0.0.1/x', ['10.0.0.1'], 'named'],
    ['https://[fd00::1]/x', ['[fd00::1]'], 'named'],
  ])('%s with %j is %s', (url, allowHosts, admission) => {
    expect(admit(new URL(url), base, allowHosts)).toBe(admission);
  });
});

describe('credentials on another origin', () => {
  const secret = text`${'secrets.TOKEN'}`;

  test('are dropped by what the adapter added, whatever the names are', async () => {
    const blob = await serve((_request, response) => response.end('the log'));
    const api = await serve((request, response) =>
      // As an upstream does that repeats its own query in the Location.
      json(response, 302, {}, { location: `${blob.origin}/blob?sig=z&${request.url.split('?')[1]}` }),
    );
    const connection = connect(
      {
        baseUrl: api.origin,
        allowHosts: [`127.0.0.1:${blob.port}`],
        auth: { kind: 'query', name: 'token', value: secret },
        headers: ['X-Api-Key', 'Private-Token', 'Circle-Token', 'Authorization', 'Cookie', 'X-Odd'].map(
          (name) => ({
            name,
            value: secret,
          }),
        ),
        query: [{ name: 'tenant-key', value: secret }],
      },
      credentials({ TOKEN: 's3cret-value' }),
    );
    const redirect = replied(await connection.perform(step(text`/log`), {}));
    expect(redirect.response.status).toBe(302n);
    expect(JSON.stringify(api.seen)).toContain('s3cret-value');
    const reply = replied(
      await connection.perform(
        follow({
          read: 'text',
          headers: [
            { name: 'X-Step', value: secret },
            { name: 'X-Plain', value: fixed('1') },
          ],
        }),
        { job: { url: redirect.response.headers?.location ?? null } },
      ),
    );
    expect(reply.response).toMatchObject({ body: 'the log', url: `${blob.origin}/blob?sig=z` });
    expect(blob.seen).toHaveLength(1);
    expect(JSON.stringify(blob.seen)).not.toContain('s3cret-value');
    expect(blob.seen[0]?.url).toBe('/blob?sig=z');
    expect(Object.keys(blob.seen[0]?.headers ?? {}).sort()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
      'x-plain',
    ]);
  });

  test('are sent again when the URL is on the own origin', async () => {
    const api = await serve();
    const connection = connect(
      { baseUrl: `${api.origin}/v1`, auth: { kind: 'header', name: 'X-Api-Key', value: secret } },
      credentials({ TOKEN: 's3cret-value' }),
    );
    replied(await connection.perform(follow(), { job: { url: `${api.origin}/elsewhere/7` } }));
    expect(api.seen[0]?.headers['x-api-key']).toBe('s3cret-value');
  });

  test.each<[string, Partial<HttpStep>]>([
    ['query', { query: value({ t: '${{ secrets.TOKEN }}' }) }],
    ['body', { method: 'POST', body: { kind: 'text', value: secret, contentType: 'text/plain' } }],
  ])('a secret in the %s of the step is an error instead', async (_place, rest) => {
    const blob = await serve();
    const connection = connect(
      { allowHosts: [`127.0.0.1:${blob.port}`] },
      credentials({ TOKEN: 's3cret-value' }),
    );
    const reply = failed(await connection.perform(follow(rest), { job: { url: `${blob.origin}/x` } }));
    expect(reply).toMatchObject({ code: 'invalid_request', sent: false });
    expect(reply.reason).toContain('sends a secret');
    expect(blob.seen).toEqual([]);
  });

  test('a 401 there does not touch the secrets', async () => {
    const blob = await serve((_request, response) => json(response, 401, {}));
    let refreshes = 0;
    const connection = connect(
      { allowHosts: [`127.0.0.1:${blob.port}`] },
      {
        ...credentials(),
        refreshSecrets: () => {
          refreshes++;
          return true;
        },
      },
    );
    replied(await connection.perform(follow(), { job: { url: `${blob.origin}/x` } }));
    expect(refreshes).toBe(0);
    expect(blob.seen).toHaveLength(1);
  });
});

describe('a host admitted by a wildcard', () => {
  const resolveTo =
    (...addresses: string[]): LookupFunction =>
    (_host, options, callback) => {
      const address = addresses.length > 1 ? addresses.shift() : addresses[0];
      if (address === undefined) return callback(new Error('no address'), '', 0);
      if (options.all) callback(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
      else callback(null, address, address.includes(':') ? 6 : 4);
    };

  test('is refused when its name resolves to a private address', async () => {
    const inside = await serve();
    const options = { lookup: resolveTo('127.0.0.1') };
    const connection = connect({ allowHosts: [`*.blob.test:${inside.port}`] }, credentials(), options);
    const reply = failed(
      await connection.perform(follow(), { job: { url: `http://a.blob.test:${inside.port}/x` } }),
    );
    expect(reply).toMatchObject({ code: 'connect', sent: false });
    expect(reply.reason).toContain('a.blob.test has a private or local address');
    expect(inside.seen).toEqual([]);
    expect(inside.sockets.size).toBe(0);
  });

  test('is checked again at every connect, since a name may change its address', async () => {
    const inside = await serve();
    // 192.0.2.1 would be refused too; a public address that nobody answers on would need the network.
    const options = { lookup: resolveTo('::ffff:10.0.0.1', '127.0.0.1') };
    const connection = connect({ allowHosts: [`*.blob.test:${inside.port}`] }, credentials(), options);
    const job = { url: `http://a.blob.test:${inside.port}/x` };
    for (const _try of [1, 2]) {
      expect(failed(await connection.perform(follow(), { job })).code).toBe('connect');
    }
    expect(inside.sockets.size).toBe(0);
  });

  test('may be private when it is named', async () => {
    const inside = await serve();
    const options = { lookup: resolveTo('127.0.0.1') };
    const allowHosts = [`*.blob.test:${inside.port}`, `a.blob.test:${inside.port}`];
    const connection = connect({ allowHosts }, credentials(), options);
    replied(await connection.perform(follow(), { job: { url: `http://a.blob.test:${inside.port}/x` } }));
    expect(inside.seen).toHaveLength(1);
  });
});

describe('private addresses', () => {
  test.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.9.9.9',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '192.0.0.1',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::127.0.0.1',
    '64:ff9b::a00:1',
    '64:ff9b::7f00:1',
    'fc00::1',
    'fd12::1',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '2002:7f00:1::',
    '2001::1',
    'nonsense',
    '',
  ])('%s is one', (address) => {
    expect(isPrivateAddress(address)).toBe(true);
  });

  test.each([
    '1.1.1.1',
    '100.63.0.1',
    '100.128.0.1',
    '172.15.0.1',
    '172.32.0.1',
    '192.169.0.1',
    '223.255.255.255',
    '2606:4700::1111',
    '2a00:1450::1',
    '::ffff:1.1.1.1',
  ])('%s is none', (address) => {
    expect(isPrivateAddress(address)).toBe(false);
  });
});
