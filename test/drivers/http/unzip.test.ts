// Zip archives: which entries are read, and what hostile ones can't do.

import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { HttpStep } from '../../../src/drivers/http/compiled.ts';
import { entryPattern } from '../../../src/drivers/http/entry-pattern.ts';
import type { Json } from '../../../src/exact-json.ts';
import { json } from '../../helpers/http-server.ts';
import { fixed, text } from '../../helpers/templates.ts';
import { type ZipEntry, zip } from '../../helpers/zip.ts';
import { connect, failed, replied, serve, step } from './fixture.ts';

const logs: ZipEntry[] = [
  { name: 'build/', data: '', method: 0 },
  { name: '0_build.txt', data: 'first\n' },
  { name: 'build/1_set up.txt', data: 'second\n', method: 0 },
  { name: 'build/system.json', data: '{"n": 1}' },
];

const take = (unzip: string, rest: Partial<HttpStep> = {}): HttpStep =>
  step(text`/logs`, { read: 'text', unzip: fixed(unzip), ...rest });

async function answered(
  body: Buffer,
  what: HttpStep,
  scope: { [root: string]: Json } = {},
  maxBytes = 65_536,
) {
  const server = await serve((_request, response) => void response.writeHead(200).end(body));
  return connect({ baseUrl: server.origin }).perform(what, scope, { maxBytes });
}

const bodyOf = async (...args: Parameters<typeof answered>): Promise<Json> =>
  replied(await answered(...args)).response.body;

const why = async (...args: Parameters<typeof answered>): Promise<string | undefined> =>
  replied(await answered(...args)).unreadable;

describe('an archive', () => {
  test('gives one entry by its name, read as the step says', async () => {
    expect(await bodyOf(zip(logs), take('build/1_set up.txt'))).toBe('second\n');
    expect(await bodyOf(zip(logs), take('build/system.json', { read: 'json' }))).toEqual({ n: 1n });
    expect(await bodyOf(zip(logs), take('0_build.txt', { read: 'base64' }))).toBe('Zmlyc3QK');
  });

  test('gives all that fit a pattern as a list, in the order of the archive', async () => {
    expect(await bodyOf(zip(logs), take('**/*.txt'))).toEqual([
      { name: '0_build.txt', body: 'first\n' },
      { name: 'build/1_set up.txt', body: 'second\n' },
    ]);
    expect(await bodyOf(zip(logs), take('*.txt'))).toEqual([{ name: '0_build.txt', body: 'first\n' }]);
    expect(await bodyOf(zip(logs), take('*.xml'))).toEqual([]);
    expect(await bodyOf(zip([]), take('*.xml'))).toEqual([]);
  });

  test('takes what stands in a hole letter by letter', async () => {
    const what = step(text`/logs`, { read: 'text', unzip: text`${'job.name'}.txt` });
    const starred = zip([...logs, { name: '*.txt', data: 'star' }]);
    expect(await bodyOf(starred, what, { job: { name: '*' } })).toBe('star');
    expect(failed(await answered(starred, what, { job: {} })).sent).toBe(false);
  });

  test('without the entry says what it holds', async () => {
    expect(await why(zip(logs), take('build.txt'))).toBe(
      'the reply (200, no content type) is an archive without "build.txt"; ' +
        'it holds 0_build.txt, build/1_set up.txt, build/system.json',
    );
  });

  test('of which an end of each entry is kept says that it is cut', async () => {
    const lines = Array.from({ length: 100 }, (_, n) => `line ${n}\n`).join('');
    const archive = zip([
      { name: 'a.txt', data: lines },
      { name: 'b.txt', data: 'short\n' },
    ]);
    const { response } = replied(
      await answered(archive, take('*.txt', { keep: { end: 'tail', bytes: 20 } })),
    );
    expect(response).toMatchObject({
      truncated: true,
      bytes: 796n,
      body: [
        { name: 'a.txt', body: 'line 98\nline 99\n' },
        { name: 'b.txt', body: 'short\n' },
      ],
    });
  });

  test('with an entry that is not what the step reads names it', async () => {
    expect(await why(zip(logs), take('*.txt', { read: 'json' }))).toMatch(
      /is not JSON: first \(in "0_build.txt"\)$/,
    );
  });

  test('that comes compressed once more is unfolded', async () => {
    const server = await serve(
      (_request, response) =>
        void response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(zip(logs))),
    );
    const { response } = replied(await connect({ baseUrl: server.origin }).perform(take('0_build.txt'), {}));
    expect(response.body).toBe('first\n');
  });

  test('may be larger than what is taken out of it', async () => {
    const noise = Buffer.alloc(200_000, 'x');
    const archive = zip([{ name: 'noise', data: noise, method: 0 }, ...logs]);
    expect(await bodyOf(archive, take('0_build.txt'), {}, 1000)).toBe('first\n');
  });

  test('is only looked for in a success', async () => {
    const server = await serve((_request, response) => json(response, 410, 'expired'));
    const { response } = replied(await connect({ baseUrl: server.origin }).perform(take('a'), {}));
    expect(response).toMatchObject({ status: 410n, body: 'expired' });
  });
});

describe('a hostile archive', () => {
  test('that unfolds to more than may be read is stopped there', async () => {
    const bomb = zip([{ name: 'a', data: Buffer.alloc(200_000_000) }]);
    const before = process.memoryUsage().rss;
    const failure = failed(await answered(bomb, take('a')));
    expect(failure).toMatchObject({ code: 'too_large', sent: true });
    expect(failure.reason).toBe('what is taken out of the archive is more than 65536 bytes');
    expect(process.memoryUsage().rss - before).toBeLessThan(40_000_000);
  });

  test('is stopped at the sum of its entries as well', async () => {
    const many = zip(Array.from({ length: 10 }, (_, n) => ({ name: `${n}`, data: Buffer.alloc(10_000) })));
    expect(failed(await answered(many, take('*'))).code).toBe('too_large');
    expect(failed(await answered(many, take('*', { keep: { end: 'tail', bytes: 9_000 } }))).code).toBe(
      'too_large',
    );
  });

  test('with too many entries is not read', async () => {
    const many = zip(Array.from({ length: 2001 }, (_, n) => ({ name: `${n}`, data: '' })));
    expect(await why(many, take('*'))).toContain('is an archive with more than 2000 entries');
  });

  test.each<[string, ZipEntry, string]>([
    ['lies about a size', { name: 'a', data: 'x'.repeat(1000), size: 10 }, 'is no sound zip archive'],
    ['lies about a checksum', { name: 'a', data: 'x', crc: 1 }, 'is an archive whose "a" is damaged'],
    ['is encrypted', { name: 'a', data: 'x', flags: 1 }, 'is encrypted'],
    ['is compressed in a strange way', { name: 'a', data: 'x', method: 99 }, 'in an unknown way'],
    ['names a path outside', { name: '../a', data: 'x' }, 'is no sound zip archive'],
    ['names an absolute path', { name: '/a', data: 'x' }, 'is no sound zip archive'],
  ])('%s: it is unreadable', async (_what, entry, expected) => {
    expect(await why(zip([entry]), take('**'))).toContain(expected);
  });

  test('that is none at all is unreadable, and quoted only when it is a page', async () => {
    const page = Buffer.from('<html><title>Sign in</title></html>');
    expect(await why(page, take('a'))).toContain('but a web page to sign in: Sign in');
    const cut = zip(logs).subarray(0, -30);
    expect(await why(cut, take('a'))).toMatch(/is no sound zip archive \([^)]*\)$/);
  });

  test('over 16 MiB is not read', async () => {
    const huge = Buffer.alloc(16 * 1024 * 1024 + 1);
    const { reason, code } = failed(await answered(huge, take('a')));
    expect(code).toBe('too_large');
    expect(reason).toContain('sent more than 16777216 bytes');
  });
});

describe('a pattern', () => {
  const fits = (pattern: string, name: string): boolean => entryPattern(fixed(pattern), {}).fits(name);

  test.each<[string, string, boolean]>([
    ['a.txt', 'a.txt', true],
    ['a.txt', 'A.txt', false],
    ['*.txt', 'a.txt', true],
    ['*.txt', 'd/a.txt', false],
    ['*', '', true],
    ['?.txt', 'a.txt', true],
    ['?.txt', '/.txt', false],
    ['**', 'd/e/a.txt', true],
    ['**/a.txt', 'a.txt', true],
    ['**/a.txt', 'd/e/a.txt', true],
    ['**/a.txt', 'da.txt', false],
    ['d/**/a.txt', 'd/a.txt', true],
    ['d/**', 'd/e', true],
    ['d/**', 'e/d', false],
    ['*/*_log', 'a/1_log', true],
    ['a*b*c', 'axxbyyc', true],
    ['a*b*c', 'axxbyy', false],
    ['[a].txt', '[a].txt', true],
  ])('%s and %s: %s', (pattern, name, expected) => {
    expect(fits(pattern, name)).toBe(expected);
  });

  test('is decided fast, whatever it is', () => {
    const started = performance.now();
    expect(fits(`${'*a'.repeat(16)}b`, 'a'.repeat(1000))).toBe(false);
    expect(fits('**/'.repeat(16), '/'.repeat(1000))).toBe(true);
    // Linear work takes milliseconds; work that grows with the square would take minutes.
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
