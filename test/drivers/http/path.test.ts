// Paths under the base URL: values are data, the base path stays.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildRequest } from '../../../src/drivers/http/request.ts';
import type { Json } from '../../../src/exact-json.ts';
import { parseExact } from '../../../src/exact-json.ts';
import { text } from '../../helpers/templates.ts';
import { connect, failed, replied, serve, step, upstream } from './fixture.ts';

function urlOf(value: Json, baseUrl = 'http://h.test/api/v3', path = text`/jobs/${'job.id'}/log`): string {
  return buildRequest(upstream({ baseUrl }), step(path), { job: { id: value } }).url.href;
}

describe('a value in a path', () => {
  test.each([
    ['team/a?b#c%2F', 'team%2Fa%3Fb%23c%252F'],
    ['a/b', 'a%2Fb'],
    ['manual__2031-05-06T07:08:09+00:00', 'manual__2031-05-06T07%3A08%3A09%2B00%3A00'],
    ['a b', 'a%20b'],
    ['zespół', 'zesp%C3%B3%C5%82'],
    ["it's(1)*!", "it's(1)*!"],
    ['..hidden', '..hidden'],
    ['a..b', 'a..b'],
    ['\\x', '%5Cx'],
    [7421900188888888881n, '7421900188888888881'],
    [true, 'true'],
    [1.5, '1.5'],
  ])('%s is encoded as data exactly once', (value, encoded) => {
    expect(urlOf(value)).toBe(`http://h.test/api/v3/jobs/${encoded}/log`);
  });

  test.each([
    '.',
    '..',
    '%2e%2e',
    '%2E.',
    '%252e%252e',
    '../admin',
    'a/../b',
    '..\\admin',
    'a/..',
    '..%2fadmin',
    '',
    'a\nb',
    'a\u0000b',
    'a\u0085b',
    '\ud800',
  ])('%j is refused', (value) => {
    expect(() => urlOf(value)).toThrow(/"\.\."|empty|control characters|broken characters/);
  });

  test.each<[Json]>([[null], [['a']], [{ a: 'b' }]])('%j is refused, as it is no single value', (value) => {
    expect(() => urlOf(value)).toThrow('job.id gives no single value');
  });

  test('dots that only make ".." together with the fixed text are refused', () => {
    expect(() => urlOf('.', undefined, text`/jobs/${'job.id'}./log`)).toThrow('".."');
  });

  test('it may stand in a query behind the fixed path', () => {
    expect(urlOf('a&b=..', undefined, text`/jobs?id=${'job.id'}&full=1`)).toBe(
      'http://h.test/api/v3/jobs?id=a%26b%3D..&full=1',
    );
  });

  test('any text keeps origin, base path and number of segments, or is refused', () => {
    const pieces = fc.constantFrom(
      '.',
      '..',
      '/',
      '\\',
      '%2e',
      '%2F',
      '%',
      '?',
      '#',
      '@',
      ':',
      ';',
      '\u0000',
      'é',
      ' ',
      '\u202e',
    );
    const hostile = fc
      .array(fc.oneof(pieces, fc.string({ unit: 'binary' })), { maxLength: 8 })
      .map((all) => all.join(''));
    let built = 0;
    fc.assert(
      fc.property(hostile, hostile, (first, second) => {
        let url: URL;
        try {
          url = buildRequest(
            upstream({ baseUrl: 'http://h.test:81/api/v3/' }),
            step(text`/jobs/${'job.a'}-${'job.b'}/x/${'job.b'}?q=${'job.a'}`),
            { job: { a: first, b: second } },
          ).url;
        } catch (error) {
          expect((error as Error).name).toBe('RequestFault');
          return;
        }
        built++;
        expect(url.origin).toBe('http://h.test:81');
        const segments = url.pathname.split('/');
        expect(segments.slice(0, 4)).toEqual(['', 'api', 'v3', 'jobs']);
        expect(segments).toHaveLength(7);
        expect(segments[5]).toBe('x');
        expect(decodeURIComponent(segments[4] ?? '')).toBe(`${first}-${second}`);
        expect(decodeURIComponent(segments[6] ?? '')).toBe(second);
        expect(url.hash).toBe('');
      }),
      { numRuns: 3000 },
    );
    expect(built).toBeGreaterThan(300);
  });
});

describe('the base path', () => {
  test.each([
    ['http://h.test/api/v3', '/repos/a'],
    ['http://h.test/api/v3/', '/repos/a'],
    ['http://h.test/api/v3', 'repos/a'],
    ['http://h.test/api/v3/', 'repos/a'],
  ])('%s and %s are joined by one slash', (baseUrl, path) => {
    const parts = { source: path, parts: [path], reads: new Set<string>(), render: () => path };
    expect(urlOf('1', baseUrl, parts)).toBe('http://h.test/api/v3/repos/a');
  });

  test.each([
    ['http://h.test', '/', 'http://h.test/'],
    ['http://h.test/api', '/', 'http://h.test/api/'],
    ['http://h.test/api', '?op=1', 'http://h.test/api?op=1'],
    ['http://h.test/api/', '?op=1', 'http://h.test/api/?op=1'],
    ['http://h.test', '//evil.test/x', 'http://h.test//evil.test/x'],
  ])('%s and %s give %s', (baseUrl, path, expected) => {
    const parts = { source: path, parts: [path], reads: new Set<string>(), render: () => path };
    expect(urlOf('1', baseUrl, parts)).toBe(expected);
  });

  test.each(['not a url', 'ftp://h.test', 'http://user:pw@h.test', 'http://h.test?x=1', 'http://h.test#x'])(
    'the base URL %s is refused without being repeated',
    (baseUrl) => {
      expect(() => urlOf('1', baseUrl)).toThrow(/^baseUrl [^/]*$/);
    },
  );
});

test('a 64-bit id goes from a reply into the next URL and body digit for digit', async () => {
  const server = await serve((_request, response) => response.end('{"id": 9007199254740993, "f": 1000.0}'));
  const connection = connect({ baseUrl: server.origin });
  const { body } = replied(await connection.perform(step(text`/jobs`), {})).response;
  expect(body).toEqual({ id: 9007199254740993n, f: 1000 });
  await connection.perform(step(text`/jobs/${'job.id'}`), { job: body });
  await connection.perform(
    step(text`/jobs`, {
      method: 'POST',
      body: { kind: 'json', value: { reads: new Set(['job']), render: (scope) => scope.job } },
    }),
    { job: parseExact('{"ids": [7421900188888888881, -0]}') },
  );
  expect(server.seen[1]?.url).toBe('/jobs/9007199254740993');
  expect(server.seen[2]?.body).toBe('{"ids":[7421900188888888881,0]}');
});

test('a path that would climb is never sent', async () => {
  const server = await serve();
  const connection = connect({ baseUrl: `${server.origin}/v1` });
  const reply = failed(await connection.perform(step(text`/jobs/${'job.id'}`), { job: { id: '..' } }));
  expect(reply).toMatchObject({ code: 'invalid_request', sent: false });
  expect(server.seen).toEqual([]);
});

test('a value that an expression can not give is an invalid request', async () => {
  const connection = connect({});
  const reply = failed(await connection.perform(step(text`/jobs/${'job.id'}`), { job: {} }));
  expect(reply).toMatchObject({
    code: 'invalid_request',
    sent: false,
    reason: expect.stringContaining('id'),
  });
});
