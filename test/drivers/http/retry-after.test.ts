// When to come back, and what counts as "too many requests".

import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createBudget } from '../../../src/drivers/budget.ts';
import { httpDate } from '../../../src/drivers/http/http-date.ts';
import { isLimited, retryAfterMs } from '../../../src/drivers/http/retry-after.ts';
import type { Json } from '../../../src/exact-json.ts';
import { createFakeClock } from '../../helpers/fake-clock.ts';
import { json } from '../../helpers/http-server.ts';
import { text } from '../../helpers/templates.ts';
import { connect, credentials, failed, follow, getJob, postJob, replied, serve, step } from './fixture.ts';

/** Our clock is an hour off: only the reply's own date counts. */
const ours = Date.UTC(2031, 4, 6, 8, 0, 0);
const date = 'Tue, 06 May 2031 07:00:00 GMT';

describe('Retry-After', () => {
  test.each<[string, number | undefined]>([
    ['120', 120_000],
    [' 120 ', 120_000],
    ['0', 0],
    ['1.5', 1500],
    ['999999999999', 3_600_000],
    ['Tue, 06 May 2031 07:00:10 GMT', 10_000],
    ['Tuesday, 06-May-31 07:00:10 GMT', 10_000],
    ['Tue May  6 07:00:10 2031', 10_000],
    ['Tue, 06 May 2031 06:59:00 GMT', 0],
    ['Thu, 06 May 2038 07:00:00 GMT', 3_600_000],
    ['-5', undefined],
    ['soon', undefined],
    ['1e9', undefined],
    ['', undefined],
    ['2031-05-06T07:00:10Z', undefined],
    ['Tue, 06 Foo 2031 07:00:10 GMT', undefined],
    ['Tue, 99 May 2031 07:00:10 GMT', undefined],
    ['NaN', undefined],
    ['120, 60', undefined],
  ])('%j means %s ms', (value, expected) => {
    expect(retryAfterMs({ 'retry-after': value, date }, ours)).toBe(expected);
  });

  test('is measured against our clock when the reply has no date, or none that can be read', () => {
    const value = 'Tue, 06 May 2031 08:00:30 GMT';
    expect(retryAfterMs({ 'retry-after': value }, ours)).toBe(30_000);
    expect(retryAfterMs({ 'retry-after': value, date: 'yesterday' }, ours)).toBe(30_000);
  });

  test('is undefined when nothing is said', () => {
    expect(retryAfterMs({ date }, ours)).toBeUndefined();
  });

  test('a two-digit year is at most fifty years ahead', () => {
    expect(httpDate('Sunday, 06-Nov-94 08:49:37 GMT')).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
    expect(httpDate('Sun Nov  6 08:49:37 1994')).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
  });
});

describe('x-ratelimit-reset', () => {
  const reset = (value: string, remaining = '0'): number | undefined =>
    retryAfterMs({ 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': value, date }, ours);
  const replied = Date.UTC(2031, 4, 6, 7, 0, 0) / 1000;

  test('counts when nothing remains, as epoch seconds', () => {
    expect(reset(String(replied + 90))).toBe(90_000);
    expect(reset(String(replied - 90))).toBe(0);
    expect(reset(String(replied + 90), '3')).toBeUndefined();
    expect(reset('soon')).toBeUndefined();
  });

  test('counts as a wait in seconds when it is far too small for a time', () => {
    expect(reset('90')).toBe(90_000);
  });

  test('comes after Retry-After', () => {
    expect(
      retryAfterMs(
        { 'retry-after': '7', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '90', date },
        ours,
      ),
    ).toBe(7000);
  });
});

describe('too many requests', () => {
  test.each<[number, { [name: string]: string }, Json, boolean]>([
    [429, {}, null, true],
    [403, { 'retry-after': '60' }, null, true],
    [403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' }, null, true],
    [403, {}, { message: 'You have exceeded a secondary rate limit. Please wait.' }, true],
    [403, {}, { message: 'You have triggered an abuse detection mechanism.' }, true],
    [403, {}, { error: { message: 'Rate Limit Exceeded' } }, true],
    [403, {}, { error: 'rate_limit' }, true],
    [403, {}, 'rate limit exceeded', true],
    [403, {}, null, false],
    [403, { 'x-ratelimit-remaining': '4999' }, { message: 'Resource not accessible by integration' }, false],
    [403, {}, { message: 'Secondary approval is needed' }, false],
    [403, {}, [{ message: 'rate limit' }], false],
    [404, { 'retry-after': '60' }, null, false],
    [503, { 'retry-after': '60' }, null, false],
    [200, { 'x-ratelimit-remaining': '0' }, null, false],
  ])('%i with %j and %j: %s', (status, headers, body, expected) => {
    expect(isLimited(status, headers, body)).toBe(expected);
  });
});

describe('over the wire', () => {
  test.each<[number, { [name: string]: string }, string, object]>([
    [429, { 'retry-after': '30' }, '{}', { limited: true, retryAfterMs: 30_000, ok: false }],
    [403, {}, '{"message": "secondary rate limit"}', { limited: true, ok: false }],
    [503, { 'retry-after': '30' }, '<html>', { retryAfterMs: 30_000, ok: false }],
    [200, { 'retry-after': '30' }, '{"status": "running"}', { retryAfterMs: 30_000, ok: true }],
  ])('%i with %j says so', async (status, headers, body, expected) => {
    const server = await serve((_request, response) => json(response, status, body, headers));
    expect(await connect({ baseUrl: server.origin }).perform(getJob, {})).toMatchObject(expected);
  });

  test('a plain 403 is not limited and names no time', async () => {
    const server = await serve((_request, response) => json(response, 403, { message: 'no access' }));
    const reply = replied(await connect({ baseUrl: server.origin }).perform(getJob, {}));
    expect(reply).not.toHaveProperty('limited');
    expect(reply).not.toHaveProperty('retryAfterMs');
  });

  test('a 403 is told by its message also where the step reads no body', async () => {
    const server = await serve((_request, response) =>
      json(response, 403, { message: 'API rate limit exceeded' }),
    );
    const reply = await connect({ baseUrl: server.origin }).perform(step(text`/job`, { read: 'none' }), {});
    expect(reply).toMatchObject({ limited: true, response: { body: null } });
  });

  test.each<[string, { [name: string]: string }, number, number]>([
    ['for as long as it says', { 'retry-after': '300' }, 299_000, 300_000],
    ['for five seconds when it names no time', {}, 4_000, 5_000],
    ['for a second at least', { 'retry-after': '0' }, 1, 1000],
  ])('a limited reply pauses the whole budget %s', async (_case, headers, least, most) => {
    const server = await serve((_request, response) => json(response, 429, {}, headers));
    const budget = createBudget({ concurrency: 8, rate: undefined }, systemClock);
    const connection = connect({ baseUrl: server.origin }, { ...credentials(), budget });
    replied(await connection.perform(postJob, {}));
    const left = budget.nextFreeAt() - Date.now();
    expect(left).toBeGreaterThan(least - 1000);
    expect(left).toBeLessThanOrEqual(most);
    expect(budget.free()).toBe(0);

    const giveUp = new AbortController();
    const waiting = connection.perform(getJob, {}, { signal: giveUp.signal });
    giveUp.abort();
    expect(failed(await waiting)).toMatchObject({ code: 'aborted', sent: false });
    expect(server.seen).toHaveLength(1);
    budget.close();
  });

  test('limited replies in a row that name no time pause it longer each time, up to a minute', async () => {
    let status = 429;
    const server = await serve((_request, response) => json(response, status, {}));
    const clock = createFakeClock();
    const budget = createBudget({ concurrency: 8, rate: undefined }, clock);
    const connection = connect({ baseUrl: server.origin }, { ...credentials(), budget }, { clock });
    const pauses: number[] = [];
    const perform = async (): Promise<void> => {
      await clock.advance(60_000);
      replied(await connection.perform(getJob, {}));
      pauses.push(budget.nextFreeAt() - clock.now());
    };
    for (let i = 0; i < 6; i++) await perform();
    status = 200;
    await perform();
    status = 429;
    await perform();
    expect(pauses).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 0, 5_000]);
    budget.close();
  });

  test('an unlimited error or a limit of another host pauses nothing', async () => {
    const server = await serve((_request, response) => json(response, 503, {}, { 'retry-after': '300' }));
    const blob = await serve((_request, response) => json(response, 429, {}));
    const budget = createBudget({ concurrency: 8, rate: undefined }, systemClock);
    const connection = connect(
      { baseUrl: server.origin, allowHosts: [`127.0.0.1:${blob.port}`] },
      { ...credentials(), budget },
    );
    replied(await connection.perform(getJob, {}));
    expect(replied(await connection.perform(follow(), { job: { url: `${blob.origin}/x` } })).limited).toBe(
      true,
    );
    expect(budget.free()).toBe(8);
  });
});

describe('the budget around exchanges', () => {
  test('holds back what is over the concurrency, and gives every place back', async () => {
    const held = new Set<ServerResponse>();
    let most = 0;
    // Answers only once three are there, so that fewer at once would hang.
    const server = await serve((_request, response) => {
      held.add(response);
      most = Math.max(most, held.size);
      if (held.size < 3) return;
      for (const waiting of held) json(waiting, 200, {});
      held.clear();
    });
    const budget = createBudget({ concurrency: 3, rate: undefined }, systemClock);
    const connection = connect({ baseUrl: server.origin }, { ...credentials(), budget });
    await Promise.all(Array.from({ length: 39 }, () => connection.perform(getJob, {})));
    expect(most).toBe(3);
    expect(budget.free()).toBe(3);
  });

  test('is not used up by requests that fail or can not be made', async () => {
    const budget = createBudget({ concurrency: 1, rate: undefined }, systemClock);
    const connection = connect({}, { ...credentials(), budget });
    failed(await connection.perform(getJob, {}));
    failed(await connection.perform(step(text`/${'job.id'}`), {}));
    expect(budget.free()).toBe(1);
  });

  test('counts the repeated request after a 401', async () => {
    const server = await serve((_request, response) => json(response, 401, {}));
    const budget = createBudget({ concurrency: 1, rate: { calls: 5, perMs: 60_000 } }, systemClock);
    const connection = connect(
      { baseUrl: server.origin },
      { ...credentials(), budget, refreshSecrets: () => true },
    );
    replied(await connection.perform(getJob, {}));
    expect(server.seen).toHaveLength(2);
    const places = await Promise.all([
      budget.acquire().then((release) => release()),
      budget.acquire().then((release) => release()),
    ]);
    expect(places).toHaveLength(2);
    expect(budget.free()).toBe(1);
    (await budget.acquire())();
    expect(budget.free()).toBe(0);
  });
});
