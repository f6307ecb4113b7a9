// Limits that replies tell of in their headers, before and after they are reached.

import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createBudget } from '../../../src/drivers/budget.ts';
import type { RateLimitNames } from '../../../src/drivers/http/rate-limit.ts';
import { isLimited, retryAfterMs, usedUpMs } from '../../../src/drivers/http/retry-after.ts';
import { json } from '../../helpers/http-server.ts';
import { connect, credentials, follow, getJob, replied, serve } from './fixture.ts';

const date = 'Tue, 06 May 2031 07:00:00 GMT';
const repliedAt = Date.UTC(2031, 4, 6, 7, 0, 0);
/** Our clock is an hour off: only the reply's own date counts. */
const ours = repliedAt + 3_600_000;

type Headers = { [name: string]: string };
const used = (headers: Headers, limits?: readonly RateLimitNames[]): number | undefined =>
  usedUpMs({ date, ...headers }, ours, limits);

describe('the reset of a limit that is used up', () => {
  const reset = (value: string): number | undefined =>
    used({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': value });

  test.each<[string, number | undefined]>([
    [String(repliedAt / 1000 + 90), 90_000],
    [String(repliedAt + 90_000), 90_000],
    ['90', 90_000],
    ['1.5', 1500],
    ['Tue, 06 May 2031 07:01:30 GMT', 90_000],
    ['2031-05-06T07:01:30Z', 90_000],
    ['2031-05-06T09:01:30.500+02:00', 90_500],
    ['1m30s', 90_000],
    ['20ms', 20],
    ['1h2m3.5s', 3_600_000],
    ['6m', 360_000],
    ['99999999', 3_600_000],
    ['1', 1000],
    ['0', 0],
    [String(repliedAt / 1000 - 90), 0],
    ['soon', undefined],
    ['', undefined],
    ['-5', undefined],
    ['2031-13-06T07:01:30Z', undefined],
    ['m', undefined],
  ])('written as %j is %s ms away', (value, expected) => {
    expect(reset(value)).toBe(expected);
  });

  test.each<[Headers, number | undefined]>([
    [{ 'ratelimit-remaining': '0', 'ratelimit-reset': '30' }, 30_000],
    [{ 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': String(repliedAt / 1000 + 30) }, 30_000],
    [{ ratelimit: 'limit=100, remaining=0, reset=30' }, 30_000],
    [{ ratelimit: '"default";r=0;t=30' }, 30_000],
    [{ ratelimit: '"burst";r=5;t=3, "daily";r=0;t=600;pk=:YQ==:' }, 600_000],
    [{ ratelimit: '"default";r=5;t=30' }, undefined],
    [{ ratelimit: 'limit=100, remaining=1, reset=30' }, undefined],
    [{ ratelimit: '"remaining=0"' }, undefined],
    [{ 'ratelimit-remaining': '1', 'ratelimit-reset': '30' }, undefined],
    [{ 'ratelimit-remaining': '0' }, undefined],
    [{ 'ratelimit-remaining': '0, 5', 'ratelimit-reset': '30' }, undefined],
    [{ 'ratelimit-reset': '30' }, undefined],
    [{}, undefined],
  ])('%j', (headers, expected) => {
    expect(used(headers)).toBe(expected);
  });

  test('is the latest of several', () => {
    const headers = {
      'ratelimit-remaining': '0',
      'ratelimit-reset': '30',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '90',
    };
    expect(used(headers)).toBe(90_000);
  });
});

describe("headers of the upstream's own", () => {
  const limits = (resetAs?: RateLimitNames['resetAs']): readonly RateLimitNames[] => [
    { remaining: 'x-tokens-left', reset: 'x-tokens-reset', resetAs },
  ];
  const reset = (value: string, resetAs?: RateLimitNames['resetAs']): number | undefined =>
    used({ 'x-tokens-left': '0', 'x-tokens-reset': value }, limits(resetAs));

  test.each<[string, RateLimitNames['resetAs'], number | undefined]>([
    ['30', undefined, 30_000],
    ['30', 'ms', 30],
    ['30', 'seconds', 30_000],
    [String(repliedAt / 1000 + 30), 'epoch', 30_000],
    [String(repliedAt + 30_000), 'epochMs', 30_000],
    ['30s', 'seconds', undefined],
  ])('%s as %s', (value, resetAs, expected) => {
    expect(reset(value, resetAs)).toBe(expected);
  });

  test('count beside the common ones', () => {
    const headers = { 'x-tokens-left': '0', 'x-tokens-reset': '30', 'x-ratelimit-remaining': '5' };
    expect(used(headers, limits())).toBe(30_000);
    expect(used(headers)).toBeUndefined();
    expect(isLimited(403, { 'x-tokens-left': '0' }, null, limits())).toBe(true);
    expect(isLimited(403, { 'x-tokens-left': '0' }, null)).toBe(false);
  });
});

describe('when to come back', () => {
  test.each<[Headers, boolean, number | undefined]>([
    [{ 'retry-after-ms': '250', 'retry-after': '1' }, false, 250],
    [{ 'retry-after-ms': 'soon', 'retry-after': '1' }, false, 1000],
    [{ 'retry-after-ms': '99999999' }, false, 3_600_000],
    [{ 'x-ratelimit-reset': '30' }, true, 30_000],
    [{ 'x-ratelimit-reset': '30' }, false, undefined],
    [{ 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': '30' }, true, undefined],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' }, false, 30_000],
  ])('%j, limited %s: %s ms', (headers, limited, expected) => {
    expect(retryAfterMs({ date, ...headers }, ours, [], limited)).toBe(expected);
  });

  test('a 403 that names a time in milliseconds is a limit', () => {
    expect(isLimited(403, { 'retry-after-ms': '5' }, null)).toBe(true);
  });
});

describe('over the wire', () => {
  async function asked(status: number, headers: Headers) {
    const server = await serve((_request, response) => json(response, status, {}, headers));
    const budget = createBudget({ concurrency: 8, rate: undefined }, systemClock);
    const connection = connect({ baseUrl: server.origin }, { ...credentials(), budget });
    const reply = replied(await connection.perform(getJob, {}));
    const pause = budget.nextFreeAt() - Date.now();
    budget.close();
    return { reply, pause: pause > 0 ? pause : undefined };
  }

  test('the last call that is left pauses the whole budget, though it was answered', async () => {
    const { reply, pause } = await asked(200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' });
    expect(reply).toMatchObject({ ok: true, retryAfterMs: 30_000 });
    expect(reply).not.toHaveProperty('limited');
    expect(pause).toBeGreaterThan(28_000);
    expect(pause).toBeLessThanOrEqual(30_000);
  });

  test('calls that are left pause nothing, and neither does a time to come back for one job', async () => {
    expect((await asked(200, { 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '30' })).pause).toBe(
      undefined,
    );
    expect((await asked(200, { 'retry-after': '30' })).pause).toBe(undefined);
    expect((await asked(200, { 'x-ratelimit-remaining': '0' })).pause).toBe(undefined);
  });

  test('a limited reply without Retry-After pauses until the reset', async () => {
    const { reply, pause } = await asked(429, { 'x-ratelimit-reset': '300' });
    expect(reply).toMatchObject({ limited: true, retryAfterMs: 300_000 });
    expect(pause).toBeGreaterThan(298_000);
  });

  test('what another host tells of its limits pauses nothing', async () => {
    const blob = await serve((_request, response) =>
      json(response, 200, {}, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' }),
    );
    const budget = createBudget({ concurrency: 8, rate: undefined }, systemClock);
    const connection = connect({ allowHosts: [`127.0.0.1:${blob.port}`] }, { ...credentials(), budget });
    replied(await connection.perform(follow(), { job: { url: `${blob.origin}/x` } }));
    expect(budget.nextFreeAt()).toBeLessThanOrEqual(Date.now());
  });
});
