// Long texts of which one end is kept, and ranges: what is left, what is said about the rest, and how much is held.

import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutEnd, cutStart } from '../../../src/drivers/http/borders.ts';
import type { HttpStep } from '../../../src/drivers/http/compiled.ts';
import { contentRange } from '../../../src/drivers/http/content-range.ts';
import { keepPart } from '../../../src/drivers/http/kept-part.ts';
import type { Handler } from '../../helpers/http-server.ts';
import { fixed, text } from '../../helpers/templates.ts';
import { connect, failed, replied, serve, step } from './fixture.ts';

const lines = Array.from({ length: 1000 }, (_, n) => `line ${n}\n`).join('');

const log = (end: 'head' | 'tail', bytes: number, rest: Partial<HttpStep> = {}): HttpStep =>
  step(text`/log`, { read: 'text', keep: { end, bytes }, ...rest });

const answer =
  (body: string | Buffer, headers: { [name: string]: string } = {}, status = 200): Handler =>
  (_request, response) =>
    void response.writeHead(status, headers).end(body);

async function read(handler: Handler, what: HttpStep, maxBytes = 1024 * 1024) {
  const server = await serve(handler);
  return replied(await connect({ baseUrl: server.origin }).perform(what, {}, { maxBytes })).response;
}

describe('the tail of a text', () => {
  test('is its last lines, and the reply says how much there was', async () => {
    const response = await read(answer(lines), log('tail', 25));
    expect(response).toMatchObject({ body: 'line 998\nline 999\n', truncated: true, bytes: 8890n });
  });

  test('is all of it when it is short enough', async () => {
    expect(await read(answer('a\nb\n'), log('tail', 4))).toMatchObject({
      body: 'a\nb\n',
      truncated: false,
      bytes: 4n,
    });
  });

  test('keeps a line that starts exactly at the cut', async () => {
    expect((await read(answer('aa\nbb\ncc\n'), log('tail', 6))).body).toBe('bb\ncc\n');
  });

  test('starts at a character where one line is longer than what is kept', async () => {
    const { body } = await read(answer('é'.repeat(10_000)), log('tail', 5001));
    expect(body).toBe('é'.repeat(2500));
  });

  test('is never more than the step may read', async () => {
    expect((await read(answer(lines), log('tail', 10_000), 20)).body).toBe('line 998\nline 999\n');
  });

  test('of a list of JSON lines holds whole lines only', async () => {
    const rows = Array.from({ length: 100 }, (_, n) => JSON.stringify({ n })).join('\n');
    const { body } = await read(answer(rows), log('tail', 25, { read: 'jsonl' }));
    expect(body).toEqual([{ n: 98n }, { n: 99n }]);
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
  ])('is found in a body that comes compressed (%s)', async (encoding, compress) => {
    const response = await read(answer(compress(lines), { 'content-encoding': encoding }), log('tail', 25));
    expect(response).toMatchObject({ body: 'line 998\nline 999\n', truncated: true, bytes: 8890n });
  });

  test('is found in a gzip file, and in one that comes compressed once more', async () => {
    const file = gzipSync(lines);
    expect(await read(answer(file), log('tail', 25))).toMatchObject({ body: 'line 998\nline 999\n' });
    const twice = answer(gzipSync(file), { 'content-encoding': 'gzip' });
    expect(await read(twice, log('tail', 25))).toMatchObject({ body: 'line 998\nline 999\n', bytes: 8890n });
  });

  test('of a compressed body that is cut off is no text', async () => {
    const server = await serve(answer(gzipSync(lines).subarray(0, 500), { 'content-encoding': 'gzip' }));
    const reply = replied(await connect({ baseUrl: server.origin }).perform(log('tail', 25), {}));
    expect(reply.unreadable).toContain('is not valid gzip');
  });

  test('of 200 MB is read through without holding more than it keeps', async () => {
    const chunk = Buffer.from(`${'x'.repeat(1023)}\n`.repeat(64));
    const times = 3200;
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': String(chunk.length * times + 4) });
      let left = times;
      const write = (): void => {
        while (left > 0) {
          left--;
          if (!response.write(chunk)) return void response.once('drain', write);
        }
        response.end('end\n');
      };
      write();
    });
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }, 5);
    const { response } = replied(await connect({ baseUrl: server.origin }).perform(log('tail', 65_536), {}));
    clearInterval(watch);
    expect(response).toMatchObject({ truncated: true, bytes: BigInt(chunk.length * times + 4) });
    expect(String(response.body)).toMatch(/x{1023}\nend\n$/);
    expect(Buffer.byteLength(String(response.body))).toBeGreaterThan(64_000);
    expect(most).toBeLessThan(110_000_000);
  }, 60_000);

  test('of a text that breaks off is a failure, as its end is not there', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('start\n');
      setImmediate(() => response.destroy());
    });
    expect(failed(await connect({ baseUrl: server.origin }).perform(log('tail', 100), {})).code).toBe(
      'reset',
    );
  });
});

describe('the head of a text', () => {
  test('is its first lines; the rest is not waited for', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200).write(lines);
    });
    const { response } = replied(await connect({ baseUrl: server.origin }).perform(log('head', 20), {}));
    expect(response).toMatchObject({ body: 'line 0\nline 1\n', truncated: true });
    expect(response).not.toHaveProperty('bytes');
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test('tells the whole size when the upstream does', async () => {
    const response = await read(answer(lines, { 'content-length': '8890' }), log('head', 20));
    expect(response).toMatchObject({ truncated: true, bytes: 8890n });
  });

  test('ends at a character where the line is longer', async () => {
    expect((await read(answer('é'.repeat(10_000)), log('head', 5001))).body).toBe('é'.repeat(2500));
    expect((await read(answer('😀'.repeat(10_000)), log('head', 5003))).body).toBe('😀'.repeat(1250));
  });

  test('of a compressed body says nothing of the size that is compressed', async () => {
    const body = gzipSync(lines.repeat(100));
    const handler = answer(body, { 'content-encoding': 'gzip', 'content-length': String(body.length) });
    const response = await read(handler, log('head', 20));
    expect(response).toMatchObject({ body: 'line 0\nline 1\n', truncated: true });
    expect(response).not.toHaveProperty('bytes');
  });

  test('of a CSV file holds whole rows, wherever its quotes are', async () => {
    const csv = 'id,note\n1,"a\nb"\n2,"c\nd"\n3,e\n';
    const { body } = await read(answer(csv), log('head', 20, { read: 'csv' }));
    expect(body).toEqual([{ id: '1', note: 'a\nb' }]);
  });

  test('of a bomb is all that is ever unfolded', async () => {
    const bomb = gzipSync(Buffer.alloc(200_000_000, 0x61));
    const response = await read(answer(bomb, { 'content-encoding': 'gzip' }), log('head', 10));
    expect(response).toMatchObject({ body: 'aaaaaaaaaa', truncated: true });
  });
});

test('an error page is read as it is, whatever is kept of a success', async () => {
  const response = await read(answer(lines, {}, 404), log('tail', 25));
  expect(response).toMatchObject({ body: lines, truncated: false });
});

describe('a range', () => {
  const range = [{ name: 'Range', value: fixed('bytes=-25') }];
  const partial = (value: string): Handler => answer(lines.slice(-25), { 'content-range': value }, 206);

  test('is a part, and says of what', async () => {
    const handler = partial('bytes 8865-8889/8890');
    const response = await read(handler, step(text`/log`, { read: 'text', headers: range }));
    expect(response).toMatchObject({ status: 206n, truncated: true, bytes: 8890n, body: lines.slice(-25) });
  });

  test('starts at a line where the step keeps a tail', async () => {
    const response = await read(partial('bytes 8865-8889/8890'), log('tail', 25, { headers: range }));
    expect(response.body).toBe('line 998\nline 999\n');
  });

  test('that holds all there is is not cut', async () => {
    const handler = answer(lines.slice(-25), { 'content-range': 'bytes 0-24/25' }, 206);
    const response = await read(handler, log('tail', 25, { headers: range }));
    expect(response).toMatchObject({ truncated: false, bytes: 25n, body: lines.slice(-25) });
  });

  test('that the upstream ignores is cut here', async () => {
    const response = await read(answer(lines), log('tail', 25, { headers: range }));
    expect(response).toMatchObject({ status: 200n, truncated: true, body: 'line 998\nline 999\n' });
  });

  test('of nothing is a reply with its status (416)', async () => {
    const server = await serve(answer('', { 'content-range': 'bytes */0' }, 416));
    const reply = replied(await connect({ baseUrl: server.origin }).perform(log('tail', 25), {}));
    expect(reply).toMatchObject({ ok: false, response: { status: 416n, body: '' } });
  });

  test.each<[string, ReturnType<typeof contentRange>]>([
    ['bytes 0-9/100', { from: 0, to: 10, total: 100 }],
    ['bytes 5-9/*', { from: 5, to: 10, total: undefined }],
    ['bytes */100', undefined],
    ['bytes 9-5/100', undefined],
    ['lines 0-9/100', undefined],
    ['', undefined],
  ])('%j', (value, expected) => {
    expect(contentRange(value)).toEqual(expected);
  });
});

test('however a text is chunked, an end of it holds its bytes and no more', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 20 }),
      fc.integer({ min: 1, max: 60 }),
      fc.constantFrom<'head' | 'tail'>('head', 'tail'),
      (chunks, bytes, end) => {
        const whole = Buffer.concat(chunks);
        const part = keepPart({ end, bytes });
        for (const chunk of chunks) if (!part.push(Buffer.from(chunk))) break;
        const kept = part.result();
        expect(kept.cut).toBe(whole.length > bytes);
        expect(kept.bytes).toEqual(end === 'head' ? whole.subarray(0, bytes) : whole.subarray(-bytes));
      },
    ),
  );
});

test('wherever a text is cut, no character is', () => {
  const rule = { wholeLines: false, quoted: false };
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 30 }), fc.nat(120), (source, at) => {
      const bytes = Buffer.from(source.toWellFormed());
      const head = cutEnd(bytes.subarray(0, at), rule).toString();
      const tail = cutStart(bytes.subarray(at), rule).toString();
      expect(source.toWellFormed().startsWith(head)).toBe(true);
      expect(source.toWellFormed().endsWith(tail)).toBe(true);
    }),
  );
});
