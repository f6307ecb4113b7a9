// The budget of one adapter: never above its concurrency or rate, first come first served, paused as a whole.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createBudget, type Release } from '../../src/drivers/budget.ts';
import { createFakeClock } from '../helpers/fake-clock.ts';

const noRate = { concurrency: 2, rate: undefined };

describe('concurrency', () => {
  test('is never exceeded, and places go to who came first', async () => {
    const budget = createBudget(noRate, createFakeClock());
    const order: number[] = [];
    const releases: Release[] = [];
    const all = [0, 1, 2, 3].map((name) =>
      budget.acquire().then((release) => {
        order.push(name);
        releases.push(release);
      }),
    );
    await Promise.all(all.slice(0, 2));
    expect(order).toEqual([0, 1]);
    expect(budget.free()).toBe(0);
    releases[1]?.();
    await all[2];
    releases[0]?.();
    await all[3];
    expect(order).toEqual([0, 1, 2, 3]);
  });

  test('counts a place as given back once, however often it is released', async () => {
    const budget = createBudget(noRate, createFakeClock());
    const release = await budget.acquire();
    await budget.acquire();
    release();
    release();
    expect(budget.free()).toBe(1);
  });

  test('when used up makes it worth asking again in a moment', async () => {
    const clock = createFakeClock();
    const budget = createBudget({ concurrency: 1, rate: undefined }, clock);
    expect(budget.nextFreeAt()).toBe(clock.now());
    const release = await budget.acquire();
    expect(budget.nextFreeAt()).toBe(clock.now() + 100);
    release();
    expect(budget.nextFreeAt()).toBe(clock.now());
  });
});

describe('rate', () => {
  test('lets that many start at once, then as the window moves on', async () => {
    const clock = createFakeClock();
    const budget = createBudget({ concurrency: 10, rate: { calls: 2, perMs: 1000 } }, clock);
    const starts: number[] = [];
    for (let call = 0; call < 5; call++) void budget.acquire().then(() => starts.push(clock.monotonic()));
    await clock.advance(300);
    expect(starts).toEqual([0, 0]);
    expect(budget.free()).toBe(0);
    expect(budget.nextFreeAt()).toBe(clock.now() + 700);
    await clock.advance(2000);
    expect(starts).toEqual([0, 0, 1000, 1000, 2000]);
  });

  test('is never exceeded in any window, and nobody is passed by or left waiting', async () => {
    const acts = fc.array(
      fc.oneof(
        fc.record({ act: fc.constant('ask' as const), holdMs: fc.integer({ min: 0, max: 3000 }) }),
        fc.record({ act: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 2500 }) }),
        fc.record({ act: fc.constant('pause' as const), ms: fc.integer({ min: 0, max: 4000 }) }),
        fc.record({ act: fc.constant('give up' as const) }),
      ),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(
        acts,
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 3000 }),
        async (script, concurrency, calls, perMs) => {
          const clock = createFakeClock();
          const budget = createBudget({ concurrency, rate: { calls, perMs } }, clock);
          const starts: number[] = [];
          const started: number[] = [];
          const waiting = new Map<number, AbortController>();
          let running = 0;
          let asked = 0;
          let gaveUp = 0;
          let pausedUntil = 0;
          for (const act of script) {
            if (act.act === 'pass') await clock.advance(act.ms);
            else if (act.act === 'pause') {
              pausedUntil = Math.max(pausedUntil, clock.monotonic() + act.ms);
              budget.pauseUntil(clock.now() + act.ms);
            } else if (act.act === 'give up') {
              const [last] = [...waiting.values()].slice(-1);
              last?.abort();
              await clock.advance(0);
            } else {
              const name = asked++;
              const giveUp = new AbortController();
              waiting.set(name, giveUp);
              budget.acquire(giveUp.signal).then(
                (release) => {
                  waiting.delete(name);
                  started.push(name);
                  starts.push(clock.monotonic());
                  expect(clock.monotonic()).toBeGreaterThanOrEqual(pausedUntil);
                  expect(++running).toBeLessThanOrEqual(concurrency);
                  clock.after(act.holdMs, () => {
                    running--;
                    release();
                  });
                },
                () => {
                  waiting.delete(name);
                  gaveUp++;
                },
              );
              await clock.advance(0);
            }
          }
          await clock.advance(1_000_000);
          expect(started.length + gaveUp).toBe(asked);
          expect(started).toEqual([...started].sort((a, b) => a - b));
          for (const [index, time] of starts.entries()) {
            const later = starts[index + calls];
            if (later !== undefined) expect(later - time).toBeGreaterThanOrEqual(perMs);
          }
          expect(clock.timers()).toBe(0);
          expect(budget.free()).toBe(Math.min(concurrency, calls));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('a pause', () => {
  test('stops everything until its end, and calls under way go on', async () => {
    const clock = createFakeClock();
    const budget = createBudget(noRate, clock);
    const release = await budget.acquire();
    budget.pauseUntil(clock.now() + 5000);
    expect(budget.free()).toBe(0);
    expect(budget.nextFreeAt()).toBe(clock.now() + 5000);
    release();
    let began: number | undefined;
    void budget.acquire().then(() => {
      began = clock.monotonic();
    });
    await clock.advance(4999);
    expect(began).toBeUndefined();
    await clock.advance(1);
    expect(began).toBe(5000);
    expect(budget.nextFreeAt()).toBe(clock.now());
  });

  test('is prolonged by a later one and never shortened', () => {
    const clock = createFakeClock();
    const budget = createBudget(noRate, clock);
    budget.pauseUntil(clock.now() + 5000);
    budget.pauseUntil(clock.now() + 1000);
    expect(budget.nextFreeAt()).toBe(clock.now() + 5000);
    budget.pauseUntil(clock.now() + 9000);
    expect(budget.nextFreeAt()).toBe(clock.now() + 9000);
  });

  test('is prolonged also for who waits already', async () => {
    const clock = createFakeClock();
    const budget = createBudget(noRate, clock);
    budget.pauseUntil(clock.now() + 1000);
    let began: number | undefined;
    void budget.acquire().then(() => {
      began = clock.monotonic();
    });
    await clock.advance(500);
    budget.pauseUntil(clock.now() + 3000);
    await clock.advance(10_000);
    expect(began).toBe(3500);
  });

  test('keeps its length when the wall clock jumps', async () => {
    const clock = createFakeClock();
    const budget = createBudget(noRate, clock);
    budget.pauseUntil(clock.now() + 5000);
    clock.jump(3_600_000);
    expect(budget.free()).toBe(0);
    clock.jump(-7_200_000);
    await clock.advance(5000);
    expect(budget.free()).toBe(2);
  });
});

describe('giving up', () => {
  test('ends the wait and uses up nothing', async () => {
    const budget = createBudget({ concurrency: 1, rate: undefined }, createFakeClock());
    const release = await budget.acquire();
    const giveUp = new AbortController();
    const waiting = budget.acquire(giveUp.signal);
    const next = budget.acquire();
    giveUp.abort();
    await expect(waiting).rejects.toThrow('given up');
    release();
    (await next)();
    expect(budget.free()).toBe(1);
    await expect(budget.acquire(AbortSignal.abort())).rejects.toThrow('given up');
  });

  test('after the place was given changes nothing', async () => {
    const budget = createBudget(noRate, createFakeClock());
    const giveUp = new AbortController();
    await budget.acquire(giveUp.signal);
    giveUp.abort();
    expect(budget.free()).toBe(1);
  });
});

test('closing ends all waiting, refuses what comes later and leaves no timer', async () => {
  const clock = createFakeClock();
  const budget = createBudget(noRate, clock);
  budget.pauseUntil(clock.now() + 5000);
  const waiting = budget.acquire();
  expect(clock.timers()).toBe(1);
  budget.close();
  await expect(waiting).rejects.toThrow('closed');
  await expect(budget.acquire()).rejects.toThrow('closed');
  expect(budget.free()).toBe(0);
  expect(budget.nextFreeAt()).toBe(Number.POSITIVE_INFINITY);
  expect(clock.timers()).toBe(0);
});

describe('callers and tasks', () => {
  test('take turns when both wait, whoever came first', async () => {
    const budget = createBudget({ concurrency: 1, rate: undefined }, createFakeClock());
    const order: string[] = [];
    const run = async (party: 'caller' | 'task'): Promise<void> => {
      const release = await budget.acquire(undefined, party);
      order.push(party);
      release();
    };
    const first = await budget.acquire(undefined, 'caller');
    const all = ['caller', 'caller', 'caller', 'task', 'task'].map((party) =>
      run(party as 'caller' | 'task'),
    );
    first();
    await Promise.all(all);
    expect(order).toEqual(['task', 'caller', 'task', 'caller', 'caller']);
  });

  test('leave half of the places to tasks while there are callers, and all when there are none', async () => {
    const clock = createFakeClock();
    const budget = createBudget({ concurrency: 4, rate: undefined }, clock);
    expect(budget.share()).toBe(0);
    const release = await budget.acquire(undefined, 'caller');
    expect(budget.share()).toBe(2);
    release();
    expect(budget.share()).toBe(0);
    await budget.acquire(undefined, 'caller');
    budget.pauseUntil(clock.now() + 1_000);
    expect(budget.share()).toBe(0);
  });
});
