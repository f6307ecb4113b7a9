// The local scheduler on the in-memory store, with a clock that the tests move.

import { describe, expect, it, onTestFinished } from 'vitest';
import { type Budget, createBudget } from '../../src/drivers/budget.ts';
import { StoreError } from '../../src/errors.ts';
import { type LocalSchedulerOptions, startLocalScheduler } from '../../src/scheduler/local.ts';
import { createSteadyClock } from '../../src/steady-clock.ts';
import { createMemoryStore } from '../../src/stores/memory.ts';
import { RecordError, type Store } from '../../src/stores/store.ts';
import type { Task, TaskRef } from '../../src/tasks/task.ts';
import { createFakeClock, type FakeClock } from '../helpers/fake-clock.ts';
import { makeEntry, nextVersion } from '../helpers/task-fixture.ts';

interface Line {
  level: 'info' | 'warn' | 'error';
  fields: object;
  message: string;
}

/** A budget of `places` for each adapter, in which every tick takes one. */
interface World {
  clock: FakeClock;
  store: Store;
  lines: Line[];
  /** Starts of ticks, in order. */
  ticks: { adapter: string; id: string; at: number }[];
  underWay: Map<string, number>;
  most: Map<string, number>;
  budget(adapter: string): Budget;
  options: LocalSchedulerOptions;
}

interface WorldOptions {
  places?: number;
  /** How long a tick holds its place. */
  tickMs?: number;
  store?: Store;
  follow?: (ref: TaskRef, world: World) => Promise<void>;
  /** The ticks take no place by themselves: `follow` does, if anybody. Default false. */
  takesNoPlace?: boolean;
}

const intervalMs = 5_000;

function createWorld({
  places = 4,
  tickMs = 0,
  store = createMemoryStore(),
  ...given
}: WorldOptions = {}): World {
  const system = createFakeClock();
  const clock = { ...system, ...createSteadyClock(system) };
  const lines: Line[] = [];
  const write = (level: Line['level']) => (fields: unknown, message?: unknown) =>
    void lines.push({ level, fields: Object(fields), message: String(message) });
  const underWay = new Map<string, number>();
  const budgets = new Map<string, Budget>();
  const budget = (adapter: string): Budget => {
    const made = budgets.get(adapter) ?? createBudget({ concurrency: places, rate: undefined }, clock);
    budgets.set(adapter, made);
    return made;
  };
  const world: World = {
    clock,
    store,
    lines,
    ticks: [],
    underWay,
    most: new Map(),
    budget,
    options: {
      store,
      clock,
      log: { info: write('info'), warn: write('warn'), error: write('error') },
      budget,
      expire: async () => {},
      async follow(ref) {
        const stored = await store.get(ref);
        if (stored === undefined) return;
        const { adapter } = stored.task;
        const release = given.takesNoPlace === true ? undefined : await budget(adapter).acquire();
        world.ticks.push({ adapter, id: ref.id, at: clock.now() });
        const now = (underWay.get(adapter) ?? 0) + 1;
        underWay.set(adapter, now);
        world.most.set(adapter, Math.max(now, world.most.get(adapter) ?? 0));
        try {
          await (given.follow ?? rescheduled)(ref, world);
        } finally {
          underWay.set(adapter, (underWay.get(adapter) ?? 0) - 1);
          release?.();
        }
      },
    },
  };
  const rescheduled = async (ref: TaskRef): Promise<void> => {
    if (tickMs > 0) await clock.sleep(tickMs);
    await reschedule(world, ref);
  };
  return world;
}

async function reschedule({ store, clock }: World, ref: TaskRef): Promise<void> {
  const stored = await store.get(ref);
  if (stored === undefined) return;
  await store.reschedule(ref, { dueAt: clock.now() + intervalMs, intervalMs }, stored.task.version);
}

/** Inserts a task that is due `inMs` from now. */
async function add(world: World, inMs: number, differs: Partial<Task> = {}): Promise<Task> {
  const { store, clock } = world;
  const entry = makeEntry(
    { createdAt: clock.now(), ...differs },
    { schedule: { dueAt: clock.now() + inMs, intervalMs } },
  );
  await store.insert(entry);
  return entry.task;
}

async function start(world: World): Promise<ReturnType<typeof startLocalScheduler>> {
  const scheduler = startLocalScheduler(world.options);
  await scheduler.started;
  onTestFinished(async () => {
    const stopping = scheduler.stop();
    await world.clock.advance(600_000);
    await stopping;
  });
  return scheduler;
}

/** The store, with calls counted and made to fail while `failing` gives an error. */
function watched(inner: Store): { store: Store; calls: string[]; failWith(error: Error | undefined): void } {
  const calls: string[] = [];
  let failing: Error | undefined;
  const store = new Proxy(inner, {
    get(target, name: keyof Store) {
      const method = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        calls.push(name);
        return failing === undefined ? method.apply(target, args) : Promise.reject(failing);
      };
    },
  });
  return {
    store,
    calls,
    failWith(error) {
      failing = error;
    },
  };
}

describe('following due tasks', () => {
  it('starts a task when it is due, and again after each interval', async () => {
    const world = createWorld();
    const task = await add(world, 30);
    const begin = world.clock.now();
    await start(world);
    await world.clock.advance(29);
    expect(world.ticks).toEqual([]);
    await world.clock.advance(1);
    expect(world.ticks).toEqual([{ adapter: 'builds', id: task.id, at: begin + 30 }]);
    await world.clock.advance(2 * intervalMs);
    expect(world.ticks.map(({ at }) => at - begin)).toEqual([30, 30 + intervalMs, 30 + 2 * intervalMs]);
  });

  it('holds the lease of a task during its tick', async () => {
    const world = createWorld({ tickMs: 100 });
    const task = await add(world, 0);
    await start(world);
    await world.clock.advance(1);
    expect(await world.store.lease(task, world.clock.now(), world.clock.now() + 1)).toBe(false);
    expect(await world.store.dueBefore('builds', world.clock.now() + 119_000, 1)).toEqual([]);
    await world.clock.advance(100);
    expect(await world.store.dueBefore('builds', world.clock.now() + intervalMs, 1)).toHaveLength(1);
  });

  it('starts a task that a wake announces, and needs no wake to come back to it', async () => {
    const world = createWorld();
    const scheduler = await start(world);
    await world.clock.advance(1_000);
    const task = await add(world, 200);
    scheduler.wake('builds', world.clock.now() + 200);
    await world.clock.advance(200);
    expect(world.ticks.map(({ id }) => id)).toEqual([task.id]);
    await world.clock.advance(intervalMs + 20);
    expect(world.ticks).toHaveLength(2);
  });

  it('brings its look forward for a task that is due before all others', async () => {
    const world = createWorld();
    await add(world, 60_000);
    const scheduler = await start(world);
    await world.clock.advance(1_000);
    const sooner = await add(world, 10);
    scheduler.wake('builds', world.clock.now() + 10);
    await world.clock.advance(10);
    expect(world.ticks.map(({ id }) => id)).toEqual([sooner.id]);
  });

  it('finds the tasks of an adapter of which no wake told', async () => {
    const world = createWorld();
    await start(world);
    await world.clock.advance(1_000);
    await add(world, 0, { adapter: 'late' });
    await world.clock.advance(30_000);
    expect(world.ticks[0]?.adapter).toBe('late');
  });

  it('leaves an ended task alone', async () => {
    const world = createWorld();
    const task = await add(world, 10);
    await world.store.save({ task: nextVersion(task, { stage: 'ended' }), outcome: '{}', durable: true });
    await start(world);
    await world.clock.advance(120_000);
    expect(world.ticks).toEqual([]);
  });

  it('does not start a tick again that outlasts its lease', async () => {
    const world = createWorld({ tickMs: 500_000 });
    await add(world, 0);
    await start(world);
    await world.clock.advance(499_000);
    expect(world.ticks).toHaveLength(1);
    await world.clock.advance(7_000);
    expect(world.ticks).toHaveLength(2);
  });

  it('follows a task again at once that its tick made due a moment before it ended', async () => {
    const world: World = createWorld({
      async follow(ref) {
        const stored = await world.store.get(ref);
        if (stored === undefined) return;
        const again = world.ticks.length < 2;
        const dueAt = world.clock.now() + (again ? 0 : intervalMs);
        await world.store.reschedule(ref, { dueAt, intervalMs }, stored.task.version);
        scheduler.wake(stored.task.adapter, dueAt);
        // The tick has given its lease back, but has not ended yet: the scheduler looks in between.
        await world.clock.sleep(5);
      },
    });
    await add(world, 0);
    const scheduler = await start(world);
    await world.clock.advance(500);
    expect(world.ticks).toHaveLength(2);
    await scheduler.stop();
  });

  it('takes a task up again whose tick forgot to reschedule it, when the lease is over', async () => {
    const world = createWorld({ follow: async () => {} });
    await add(world, 0);
    await start(world);
    await world.clock.advance(119_000);
    expect(world.ticks).toHaveLength(1);
    await world.clock.advance(2_000);
    expect(world.ticks).toHaveLength(2);
  });
});

describe('budgets', () => {
  it.each([1, 3, 8])('never has more than %i ticks under way, and uses all of them', async (places) => {
    const world = createWorld({ places, tickMs: 50 });
    for (let i = 0; i < 40; i++) await add(world, i % 7);
    await start(world);
    await world.clock.advance(2_500);
    expect(world.most.get('builds')).toBe(places);
    expect(world.ticks.length).toBeGreaterThanOrEqual(40);
  });

  it('goes on at once while more is due, without waiting between the claims', async () => {
    const world = createWorld({ places: 8, tickMs: 1 });
    for (let i = 0; i < 400; i++) await add(world, 0);
    world.options.store = { ...world.store, spread: async () => 0 };
    await start(world);
    // Fifty claims of eight ticks, a millisecond each.
    await world.clock.advance(60);
    expect(world.ticks).toHaveLength(400);
  });

  it('starts no more ticks than are free, even before their calls show in the budget', async () => {
    const world = createWorld({ places: 3, tickMs: 50, takesNoPlace: true });
    for (let i = 0; i < 20; i++) await add(world, 0);
    await start(world);
    await world.clock.advance(1_000);
    expect(world.most.get('builds')).toBe(3);
    expect(world.ticks.length).toBe(20);
  });

  it('starts no more than is free while others use the budget too', async () => {
    const world = createWorld({
      places: 8,
      takesNoPlace: true,
      follow: async (ref, world) => {
        // What a tick does before its call, such as rendering the request, takes a few turns.
        for (let turn = 0; turn < 30; turn++) await Promise.resolve();
        const release = await world.budget('builds').acquire();
        await world.clock.sleep(50);
        release();
        await reschedule(world, ref);
      },
    });
    // The lane has seen all eight places free before others took six.
    await add(world, 0);
    const scheduler = await start(world);
    await world.clock.advance(100);
    await Promise.all(Array.from({ length: 6 }, () => world.budget('builds').acquire()));
    world.most.clear();
    for (let i = 0; i < 20; i++) await add(world, 0);
    scheduler.wake('builds', world.clock.now());
    await world.clock.advance(40);
    expect(world.most.get('builds')).toBe(2);
    await world.clock.advance(1_000);
    expect(world.most.get('builds')).toBe(2);
    expect(world.ticks).toHaveLength(21);
  });

  it('waits until the budget says that it is free again', async () => {
    const world = createWorld();
    world.budget('builds').pauseUntil(world.clock.now() + 8_005);
    const begin = world.clock.now();
    await add(world, 0);
    const { store, calls } = watched(world.store);
    world.options.store = store;
    await start(world);
    await world.clock.advance(8_004);
    expect(world.ticks).toEqual([]);
    expect(calls.filter((name) => name === 'dueBefore')).toEqual([]);
    await world.clock.advance(1);
    expect(world.ticks[0]?.at).toBe(begin + 8_005);
  });

  it('notices a place that somebody else’s call gave back', async () => {
    const world = createWorld({ places: 1 });
    const release = await world.budget('builds').acquire();
    await add(world, 0);
    await start(world);
    await world.clock.advance(5_000);
    expect(world.ticks).toEqual([]);
    release();
    await world.clock.advance(100);
    expect(world.ticks).toHaveLength(1);
  });

  it('does not let a long backlog of one adapter delay another', async () => {
    const world = createWorld({ places: 2, tickMs: 1_000 });
    for (let i = 0; i < 2_000; i++) await add(world, 0, { adapter: 'busy' });
    for (let i = 0; i < 10; i++) await add(world, 100 * i, { adapter: 'small' });
    const begin = world.clock.now();
    // Without the spreading of a restart, which would thin the backlog out.
    world.options.store = { ...world.store, spread: async () => 0 };
    await start(world);
    await world.clock.advance(6_000);
    const small = world.ticks.filter(({ adapter }) => adapter === 'small').map(({ at }) => at - begin);
    // Two at once, a second each: exactly as if it were alone.
    expect(small.slice(0, 10)).toEqual([0, 100, 1_000, 1_100, 2_000, 2_100, 3_000, 3_100, 4_000, 4_100]);
    expect(world.most.get('busy')).toBe(2);
  });
});

describe('failing ticks', () => {
  it('logs a tick that throws, tries its task again after its interval, and goes on with the others', async () => {
    let bad = '';
    const world = createWorld({
      follow: async (ref, world) => {
        if (ref.id === bad) throw new TypeError('the adapter broke');
        await reschedule(world, ref);
      },
    });
    const broken = await add(world, 0);
    const fine = await add(world, 0);
    bad = broken.id;
    await start(world);
    await world.clock.advance(2 * intervalMs + 100);
    const of = (task: Task): number => world.ticks.filter(({ id }) => id === task.id).length;
    expect(of(fine)).toBe(3);
    expect(of(broken)).toBe(3);
    expect(world.lines.filter(({ level }) => level === 'error')).toHaveLength(3);
    expect(world.lines[0]).toMatchObject({ level: 'error', fields: { adapter: 'builds', task: broken.key } });
  });

  it('never writes the id of a task into the log', async () => {
    const world = createWorld({ follow: () => Promise.reject(new Error('broke')) });
    const task = await add(world, 0);
    await start(world);
    await world.clock.advance(1_000);
    expect(world.lines).not.toEqual([]);
    expect(JSON.stringify(world.lines)).not.toContain(task.id);
  });

  it('slows down while ticks can’t save, and recovers', async () => {
    let full = true;
    const world = createWorld({
      follow: async (ref, world) => {
        if (full) throw new StoreError('store_full', 'no space left');
        await reschedule(world, ref);
      },
    });
    for (let i = 0; i < 50; i++) await add(world, 0);
    world.options.store = { ...world.store, spread: async () => 0 };
    await start(world);
    await world.clock.advance(60_000);
    // After 1, 2, 4, 8 and 16 seconds, and at most as many ticks at a time as the budget has places.
    expect(world.ticks.length).toBeLessThanOrEqual(6 * 4);
    expect(world.ticks.length).toBeGreaterThanOrEqual(5 * 4);
    full = false;
    await world.clock.advance(60_000);
    expect(new Set(world.ticks.slice(-60).map(({ id }) => id)).size).toBe(50);
    expect(world.lines.some(({ message }) => message === 'the store works again')).toBe(true);
  });
});

describe('a record at fault', () => {
  it('is set aside with one line in the log, and delays no other task', async () => {
    const inner = createMemoryStore();
    let broken: string | undefined;
    const store: Store = {
      ...inner,
      get: (ref) =>
        ref.id === broken
          ? Promise.reject(new RecordError('store_failed', 'the record can’t be read'))
          : inner.get(ref),
    };
    const world = createWorld({ store, places: 1 });
    broken = (await add(world, 0)).id;
    const healthy = await add(world, 10);
    const begin = world.clock.now();
    await start(world);
    await world.clock.advance(3_500_000);
    expect(world.lines).toMatchObject([
      { level: 'error', message: expect.stringContaining('its record is at fault') },
    ]);
    // The lane is never paused: the healthy task keeps its interval.
    expect(world.ticks.every(({ id }) => id === healthy.id)).toBe(true);
    expect(world.ticks.length).toBeGreaterThanOrEqual(Math.floor(3_500_000 / (intervalMs + 20)));
    expect((world.ticks[0]?.at ?? 0) - begin).toBeLessThan(100);

    // It is tried again after an hour, and followed when it can be read.
    const id = broken;
    broken = undefined;
    await world.clock.advance(300_000);
    expect(world.ticks.some((tick) => tick.id === id)).toBe(true);
    expect(world.lines).toHaveLength(1);
  });
});

describe('a failing store', () => {
  it('is tried again ever more slowly, and used as soon as it works', async () => {
    const { store, calls, failWith } = watched(createMemoryStore());
    const world = createWorld({ store });
    await add(world, 500);
    await start(world);
    await world.clock.advance(100);
    failWith(new StoreError('store_failed', 'the disk is gone'));
    calls.length = 0;
    await world.clock.advance(120_000);
    expect(world.ticks).toEqual([]);
    const looks = calls.filter((name) => name === 'dueBefore').length;
    expect(looks).toBeGreaterThanOrEqual(5);
    expect(looks).toBeLessThanOrEqual(10);
    expect(world.lines.filter(({ message }) => message.startsWith('the store fails'))).toHaveLength(1);
    failWith(undefined);
    await world.clock.advance(30_000);
    expect(world.ticks.length).toBeGreaterThanOrEqual(1);
  });

  it('delays the start until the old leases are released', async () => {
    const { store, calls, failWith } = watched(createMemoryStore());
    const world = createWorld({ store });
    await add(world, 0);
    failWith(new StoreError('store_full', 'no space left'));
    const scheduler = startLocalScheduler(world.options);
    onTestFinished(() => scheduler.stop());
    let started = false;
    void scheduler.started.then(() => {
      started = true;
    });
    scheduler.wake('builds', world.clock.now());
    await world.clock.advance(3_500);
    expect(started).toBe(false);
    expect(calls).not.toContain('dueBefore');
    failWith(undefined);
    await world.clock.advance(1_000);
    expect(started).toBe(true);
    expect(world.ticks).toHaveLength(1);
  });

  it('can be closed under the scheduler, which then still stops', async () => {
    const world = createWorld();
    await add(world, 100);
    const scheduler = await start(world);
    await world.clock.advance(10);
    await world.store.close();
    await world.clock.advance(100_000);
    expect(world.ticks).toEqual([]);
    await scheduler.stop();
    expect(world.clock.timers()).toBe(0);
  });
});

describe('starting', () => {
  it('takes up the tasks that the last process held', async () => {
    const world = createWorld();
    const task = await add(world, 0);
    await world.store.lease(task, world.clock.now(), world.clock.now() + 120_000);
    await start(world);
    await world.clock.advance(1);
    expect(world.ticks.map(({ id }) => id)).toEqual([task.id]);
  });

  it('spreads a backlog over the time that the adapter’s rate needs, in its order', async () => {
    const world = createWorld({ places: 8 });
    const ids: string[] = [];
    for (let i = 0; i < 100; i++) ids.push((await add(world, i - 1_000)).id);
    const begin = world.clock.now();
    world.options.callsPerSecond = () => 10;
    await start(world);
    await world.clock.advance(4_000);
    expect(world.ticks.length).toBeGreaterThanOrEqual(39);
    expect(world.ticks.length).toBeLessThanOrEqual(42);
    await world.clock.advance(6_000);
    const firsts = ids.map((id) => world.ticks.findIndex((tick) => tick.id === id));
    expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
    expect(world.ticks[firsts[99] ?? -1]?.at).toBe(begin + 9_900);
  });

  it('spreads over five seconds at least and five minutes at most', async () => {
    const windows: number[] = [];
    for (const rate of [1_000, 0.01]) {
      const world = createWorld();
      for (let i = 0; i < 20; i++) await add(world, -1);
      world.options.callsPerSecond = () => rate;
      world.options.store = {
        ...world.store,
        spread: async (_adapter, _now, windowMs) => windows.push(windowMs),
      };
      await start(world);
      await world.clock.advance(0);
    }
    expect(windows).toEqual([5_000, 300_000]);
  });

  it('does not delay a backlog that the budget takes at once', async () => {
    const world = createWorld({ places: 4 });
    for (let i = 0; i < 4; i++) await add(world, -1);
    await start(world);
    await world.clock.advance(1);
    expect(world.ticks).toHaveLength(4);
  });

  it('starts a task of which a wake told before the start was over', async () => {
    const world = createWorld();
    const scheduler = startLocalScheduler(world.options);
    onTestFinished(() => scheduler.stop());
    scheduler.wake('builds', world.clock.now());
    await add(world, 0);
    await world.clock.advance(25);
    expect(world.ticks).toHaveLength(1);
  });
});

describe('resting', () => {
  it('asks the store only now and then while nothing is due', async () => {
    const { store, calls } = watched(createMemoryStore());
    const world = createWorld({ store });
    const far = 40 * 86_400_000;
    const entry = makeEntry({
      deadline: world.clock.now() + 2 * far,
      expiresAt: world.clock.now() + 3 * far,
    });
    await store.insert({ ...entry, schedule: { dueAt: world.clock.now() + far, intervalMs: far } });
    await start(world);
    await world.clock.advance(1_000);
    calls.length = 0;
    await world.clock.advance(600_000);
    // Every 30 s: which adapters, what is due, what next; deadlines every 10 s; and a purge a minute.
    expect(calls.length).toBeLessThanOrEqual(135);
    expect(world.clock.timers()).toBeLessThanOrEqual(4);
  });

  it('holds nothing for each task that waits', async () => {
    const world = createWorld();
    for (let i = 0; i < 1_000; i++) await add(world, 60_000 + i);
    await start(world);
    await world.clock.advance(1_000);
    expect(world.clock.timers()).toBeLessThanOrEqual(4);
  });
});

describe('a task that somebody else claims first', () => {
  it('is looked at again a little later, not at once', async () => {
    const { store, calls } = watched({ ...createMemoryStore(), lease: async () => false });
    const world = createWorld({ store });
    await add(world, 0);
    await start(world);
    await world.clock.advance(1_000);
    expect(world.ticks).toEqual([]);
    const looks = calls.filter((name) => name === 'dueBefore').length;
    expect(looks).toBeGreaterThan(10);
    expect(looks).toBeLessThanOrEqual(51);
  });
});

describe('purging', () => {
  it('removes what has expired, in slices of at most 500', async () => {
    const { store, calls } = watched(createMemoryStore());
    const world = createWorld({ store });
    for (let i = 0; i < 1_200; i++) {
      const entry = makeEntry({ stage: 'ended', expiresAt: world.clock.now() + 30_000 });
      await store.insert({ ...entry, schedule: { dueAt: world.clock.now() + 9e8, intervalMs } });
    }
    const kept = await add(world, 9e8);
    await start(world);
    calls.length = 0;
    await world.clock.advance(61_000);
    expect(calls.filter((name) => name === 'purge')).toHaveLength(3);
    expect(await store.counts()).toEqual([{ adapter: 'builds', stage: 'following', count: 1 }]);
    expect(await store.get(kept)).toBeDefined();
  });
});

describe('stopping', () => {
  it('waits for the ticks under way, starts no more, and leaves no timer', async () => {
    const world = createWorld({ places: 2, tickMs: 3_000 });
    for (let i = 0; i < 10; i++) await add(world, 0);
    world.options.store = { ...world.store, spread: async () => 0 };
    const scheduler = await start(world);
    await world.clock.advance(100);
    let stopped = false;
    const stopping = scheduler.stop().then(() => {
      stopped = true;
    });
    await world.clock.advance(2_800);
    expect(stopped).toBe(false);
    await world.clock.advance(200);
    await stopping;
    expect(world.ticks).toHaveLength(2);
    expect(world.clock.timers()).toBe(0);
    scheduler.wake('builds', world.clock.now());
    await world.clock.advance(60_000);
    expect(world.ticks).toHaveLength(2);
  });

  it('waits for the look at the store that is under way, and starts nothing that it finds', async () => {
    const inner = createMemoryStore();
    const looking = Promise.withResolvers<void>();
    const world = createWorld({
      store: {
        ...inner,
        dueBefore: async (...args) => {
          await looking.promise;
          return inner.dueBefore(...args);
        },
      },
    });
    await add(world, 0);
    const scheduler = await start(world);
    await world.clock.advance(10);
    let stopped = false;
    const stopping = scheduler.stop().then(() => {
      stopped = true;
    });
    await world.clock.advance(1_000);
    expect(stopped).toBe(false);
    looking.resolve();
    await stopping;
    await world.clock.advance(1_000);
    expect(world.ticks).toEqual([]);
  });
});

describe('a store that takes no writes at the start', () => {
  it('fails the start after some seconds, with its own error', async () => {
    const { store, failWith } = watched(createMemoryStore());
    const world = createWorld({ store });
    failWith(new StoreError('store_full', 'no space left'));
    const scheduler = startLocalScheduler(world.options);
    onTestFinished(() => scheduler.stop());
    const outcome = scheduler.started.then(
      () => 'started',
      (error: StoreError) => error.code,
    );
    await world.clock.advance(7_000);
    expect(await outcome).toBe('store_full');
  });
});

describe('a wall clock that is set back', () => {
  it('delays the looks at tasks for no more than a few minutes', async () => {
    const world = createWorld();
    const task = await add(world, 1_000, {
      deadline: world.clock.now() + 9e7,
      expiresAt: world.clock.now() + 9e8,
    });
    await start(world);
    await world.clock.advance(10_000);
    world.clock.jump(-3_600_000);
    await world.clock.advance(180_000);
    const before = world.ticks.length;
    await world.clock.advance(60_000);
    expect(world.ticks.length - before).toBeGreaterThan(5);
    expect(world.ticks.every(({ id }) => id === task.id)).toBe(true);
  });

  it('before a start is noticed by it', async () => {
    const world = createWorld();
    await add(world, 7 * 3_600_000, {
      deadline: world.clock.now() + 9e7,
      expiresAt: world.clock.now() + 9e8,
    });
    await start(world);
    await world.clock.advance(10_000);
    expect(world.ticks.length).toBeGreaterThan(0);
    expect(world.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', message: expect.stringContaining('was set back') }),
    );
  });
});

describe('a deadline', () => {
  it('is kept to though the budget of the adapter lets nothing be asked', async () => {
    const expired: string[] = [];
    const world = createWorld();
    world.budget('builds').pauseUntil(9e15);
    world.options.expire = async (ref) => {
      expired.push(ref.id);
      await world.store.remove(ref);
    };
    const late = await add(world, 1_000, { deadline: world.clock.now() + 5_000 });
    await add(world, 1_000, { deadline: world.clock.now() + 9e7 });
    await start(world);
    await world.clock.advance(14_000);
    expect(expired).toEqual([]);
    await world.clock.advance(20_000);
    expect(expired).toEqual([late.id]);
    expect(world.ticks).toEqual([]);
  });

  it('of many tasks is kept to in slices, one by one where a record is at fault', async () => {
    const world = createWorld();
    world.budget('builds').pauseUntil(9e15);
    let broken = '';
    world.options.expire = async (ref) => {
      if (ref.id === broken) throw new RecordError('store_failed', 'the record can’t be read');
      await world.store.remove(ref);
    };
    for (let i = 0; i < 200; i++) {
      const task = await add(world, 1_000, { deadline: world.clock.now() + 5_000 });
      if (i === 3) broken = task.id;
    }
    await start(world);
    await world.clock.advance(60_000);
    expect(await world.store.pastDeadline(world.clock.now(), 10)).toHaveLength(0);
    expect(await world.store.counts()).toEqual([{ adapter: 'builds', stage: 'following', count: 1 }]);
    expect(world.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });
});
