// The scheduler of a single instance: finds due tasks in the store, follows them within their upstream's budget,
// spreads the backlog after a restart, and purges what has expired.

import type { Log } from '../observability/log.ts';
import type { SteadyClock } from '../steady-clock.ts';
import type { Store } from '../stores/store.ts';
import type { TaskRef } from '../tasks/task.ts';
import { endOverdue } from './deadlines.ts';
import { createLane, type Lane, type LaneBudget } from './lane.ts';
import { purgeExpired } from './purge.ts';
import { spreadBacklog } from './spread.ts';

export interface LocalSchedulerOptions {
  store: Store;
  clock: SteadyClock;
  log: Pick<Log, 'info' | 'warn' | 'error'>;
  /** One tick of a leased task, which reschedules the task itself. Should one throw, the task is tried again later. */
  follow(ref: TaskRef): Promise<void>;
  /** Ends a leased task that is past its deadline, without waiting for its upstream. */
  expire(ref: TaskRef): Promise<void>;
  budget(adapter: string): LaneBudget;
  /** Calls per second that an adapter's rate allows; undefined when it has none. Only for spreading a backlog. */
  callsPerSecond?(adapter: string): number | undefined;
  /** How long a tick may take before it is taken for dead, in milliseconds. Default 2 minutes. */
  leaseMs?: number;
}

export interface LocalScheduler {
  /**
   * Resolves when the leases of the last process are released. Insert no task before: its lease would go too.
   * Rejects with the StoreError of a store that takes no writes for five seconds, such as one on a full disk.
   */
  started: Promise<void>;
  /** A task of `adapter` was scheduled for `dueAt` (wall time). Cheap; asks the store for nothing. */
  wake(adapter: string, dueAt: number): void;
  /** Claims nothing more; resolves when the ticks under way have ended. */
  stop(): Promise<void>;
}

/** Milliseconds between looks for adapters and tasks of which no wake told. */
const rescanEvery = 30_000;
/** Milliseconds between tries to begin with a store that fails, and for how long it is tried. */
const startRetry = 1_000;
const startLimit = 5_000;

export function startLocalScheduler(options: LocalSchedulerOptions): LocalScheduler {
  const { store, clock, log, follow, expire, budget, leaseMs = 120_000 } = options;
  const ending = new AbortController();
  const { signal } = ending;
  const lanes = new Map<string, Lane>();
  /** From when on tasks may be claimed; the first scan finds whatever wakes told of before. */
  let open = false;

  const wake = (adapter: string, dueAt: number): void => {
    if (signal.aborted || !open) return;
    let lane = lanes.get(adapter);
    if (lane === undefined) {
      lane = createLane({ adapter, store, clock, log, follow, leaseMs, budget: budget(adapter) });
      lanes.set(adapter, lane);
    }
    lane.wake(dueAt);
  };

  const releaseLeases = async (): Promise<void> => {
    const until = clock.monotonic() + startLimit;
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        return await store.releaseLeases();
      } catch (error) {
        if (clock.monotonic() >= until) throw error;
        if (tries === 0) log.warn({ err: error }, 'the store fails; the scheduler waits for it to begin');
        await clock.sleep(startRetry, signal);
      }
    }
  };

  /** Looks that a clock which was set back has left far ahead. A store that fails is asked again at the next start. */
  const pullForward = async (): Promise<void> => {
    try {
      const tasks = await store.pullForward(clock.now());
      if (tasks > 0)
        log.warn({ tasks }, 'the wall clock was set back: tasks are looked at now instead of later');
    } catch (error) {
      log.warn({ err: error }, 'looks could not be brought forward after the wall clock was set back');
    }
  };
  clock.onSetBack(() => {
    void pullForward().then(() => {
      for (const adapter of lanes.keys()) wake(adapter, clock.now());
    });
  });

  const begin = async (): Promise<void> => {
    try {
      await started;
    } catch {
      // Whoever waits for `started` is told.
      return;
    }
    await pullForward();
    await spreadBacklog({
      store,
      clock,
      log,
      room: (adapter) => budget(adapter).free(),
      callsPerSecond: (adapter) => options.callsPerSecond?.(adapter),
    });
    open = true;
    await Promise.all([rescan(), endOverdue({ store, clock, log, expire, leaseMs, signal })]);
  };

  const rescan = async (): Promise<void> => {
    let failing = false;
    while (!signal.aborted) {
      try {
        // Known lanes look again too: the wall clock may have been set.
        for (const adapter of await store.scheduledAdapters()) wake(adapter, clock.now());
        failing = false;
      } catch (error) {
        if (!failing) log.warn({ err: error }, 'the store does not say which adapters have tasks');
        failing = true;
      }
      await clock.sleep(rescanEvery, signal);
    }
  };

  const started = releaseLeases();
  const loops = [begin(), purgeExpired({ store, clock, log, signal })];

  return {
    started,
    wake,
    async stop() {
      ending.abort();
      await Promise.all([...loops, ...[...lanes.values()].map((lane) => lane.stop())]);
      // A lane that the last rescan made while the others were being waited for.
      await Promise.all([...lanes.values()].map((lane) => lane.stop()));
    },
  };
}
