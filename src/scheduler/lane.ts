// One adapter's share of the scheduler: claims its due tasks as its budget allows, and runs their ticks.
//
// Lanes don't know of each other, so an adapter with a long backlog delays only itself. A lane keeps no object
// per task: it knows when its next task is due, and the ticks that are under way.
//
//   idle ──timer, wake, tick ended──▶ round: ask the store for due tasks, lease them, start their ticks
//    ▲                                  │
//    └── timer for the next due task ◀──┘   at once again while there is more due work and budget for it

import type { Cancel, Clock } from '../clock.ts';
import { StoreError } from '../errors.ts';
import type { Log } from '../observability/log.ts';
import { RecordError, type Store } from '../stores/store.ts';
import { refKey, type TaskRef } from '../tasks/task.ts';

/** What the upstream of one adapter may be asked; the part of a `Budget` (drivers/budget.ts) that a lane needs. */
export interface LaneBudget {
  /** How many upstream calls would get a place at once. */
  free(): number;
  /** How many ticks may be under way though nothing is free: their calls take turns with those of callers. */
  share(): number;
  /**
   * Wall time when it is worth asking for a place: in a moment when all are taken, since nobody tells when somebody
   * else's call gives one back; never (`Infinity`) once the budget is closed.
   */
  nextFreeAt(): number;
}

export interface LaneOptions {
  adapter: string;
  store: Pick<Store, 'dueBefore' | 'nextDue' | 'lease' | 'get' | 'reschedule'>;
  clock: Clock;
  budget: LaneBudget;
  log: Pick<Log, 'info' | 'warn' | 'error'>;
  /** One tick of a leased task, which reschedules the task itself. */
  follow(ref: TaskRef): Promise<void>;
  /** How long a tick may take before another may start for the same task, in milliseconds. */
  leaseMs: number;
}

export interface Lane {
  /** A task of the lane may be due at `time` (wall time): the store is asked again then. */
  wake(time: number): void;
  /** Claims nothing more; resolves when no tick is under way. */
  stop(): Promise<void>;
}

/** Tasks claimed in one round: leases of one round share a commit. */
const largestClaim = 64;
/** Milliseconds to the next look after one that found tasks due but none to claim. */
const lostRaceWait = 20;
/** Milliseconds from a tick's end to the look for what it scheduled; many ends share one look. */
const tickEndWait = 10;
const firstBackoff = 1_000;
const longestBackoff = 30_000;
/** Milliseconds until the next try when a failed tick's own interval is unknown or shorter. */
const shortestRetry = 1_000;
/** Milliseconds for which a task is left alone whose record can't be read or written. */
const setAsideFor = 3_600_000;

export function createLane(options: LaneOptions): Lane {
  const { adapter, store, clock, budget, log, follow, leaseMs } = options;
  /** Claims and ticks under way; never more than the budget ever had free. */
  const underWay = new Map<string, { ended: Promise<void>; since: number }>();
  /** Those of them whose calls the budget can't show yet: being leased, or started in this turn. */
  let unsettled = 0;
  let widest = 0;
  /** Wall time of the next look at the store; Infinity when no task is known. */
  let lookAt = Number.POSITIVE_INFINITY;
  let cancelTimer: Cancel = () => {};
  let round: Promise<void> | undefined;
  let backoff = 0;
  /** Monotonic time before which the store is left alone after a failure. */
  let retryAt = Number.NEGATIVE_INFINITY;
  let stopped = false;

  /** How many ticks may start now. */
  const room = (): number => {
    const free = budget.free();
    const share = budget.share();
    widest = Math.max(widest, free, share);
    const allowed = Math.max(free - unsettled, share - underWay.size);
    return Math.max(0, Math.min(allowed, widest - underWay.size, largestClaim));
  };

  /** Wall time when there may be room again; undefined when something that ends here will say so, or never. */
  const roomAt = (now: number): number | undefined => {
    if (room() > 0) return now;
    if (unsettled > 0 || (underWay.size > 0 && underWay.size >= widest)) return undefined;
    const at = budget.nextFreeAt();
    if (at === Number.POSITIVE_INFINITY) return undefined;
    return at > now ? at : now + lostRaceWait;
  };

  const plan = (): void => {
    cancelTimer();
    if (stopped || round !== undefined || lookAt === Number.POSITIVE_INFINITY) return;
    const now = clock.now();
    const at = roomAt(now);
    if (at === undefined) return;
    const wait = Math.max(lookAt - now, at - now, retryAt - clock.monotonic());
    if (wait > 0) {
      cancelTimer = clock.after(wait, plan);
      return;
    }
    round = claim()
      .catch(pause)
      .finally(() => {
        round = undefined;
        plan();
      });
  };

  const wake = (time: number): void => {
    if (time >= lookAt) return;
    lookAt = time;
    plan();
  };

  const claim = async (): Promise<void> => {
    const now = clock.now();
    const count = room();
    // Wakes that come while the store is asked count from here on.
    lookAt = Number.POSITIVE_INFINITY;
    const refs = await store.dueBefore(adapter, now, count);
    if (stopped) return;
    const claims = await Promise.allSettled(refs.map((ref) => lease(ref, now)));
    const failed = claims.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const won = claims.some((result) => result.status === 'fulfilled' && result.value);
    if (refs.length >= count && won) return wake(now);
    const next = await store.nextDue(adapter);
    if (next !== undefined) wake(next > now ? next : now + lostRaceWait);
  };

  /** @returns whether the task is ours, and so out of the way of the next look. */
  const lease = async (ref: TaskRef, now: number): Promise<boolean> => {
    const key = refKey(ref);
    const running = underWay.get(key);
    if (running !== undefined) {
      // A tick that outlasts its lease keeps its task. One that has just given its lease back and is about to end
      // must not be leased again: nobody would follow the task until that lease is over.
      if (clock.monotonic() - running.since < leaseMs) return false;
      return store.lease(ref, now, now + leaseMs);
    }
    const { promise, resolve: ended } = Promise.withResolvers<void>();
    underWay.set(key, { ended: promise, since: clock.monotonic() });
    unsettled++;
    const end = (): void => {
      underWay.delete(key);
      ended();
    };
    try {
      const leased = await store.lease(ref, now, now + leaseMs);
      if (leased && !stopped) {
        void tick(ref, now + leaseMs).finally(() => {
          end();
          wake(clock.now() + tickEndWait);
          plan();
        });
        // By then the tick has asked the budget for its first call, and `free` says so.
        setImmediate(() => {
          unsettled--;
          plan();
        });
        return true;
      }
      unsettled--;
      end();
      return leased;
    } catch (error) {
      unsettled--;
      end();
      throw error;
    }
  };

  const tick = async (ref: TaskRef, leasedUntil: number): Promise<void> => {
    try {
      await follow(ref);
      if (backoff > 0) log.info({ adapter }, 'the store works again');
      backoff = 0;
    } catch (error) {
      if (error instanceof RecordError) return setAside(ref, leasedUntil, error);
      if (error instanceof StoreError) pause(error);
      await retryLater(ref, error);
    }
  };

  /** A tick that threw has not rescheduled its task. When this fails too, the end of the lease brings it back. */
  const retryLater = async (ref: TaskRef, reason: unknown): Promise<void> => {
    try {
      let stored = await store.get(ref);
      // The id may give access to the task, so the log names the key.
      log.error(
        { adapter, task: stored?.task.key, err: reason },
        'following a task failed; it is tried again',
      );
      while (stored?.schedule !== undefined) {
        const intervalMs = Math.max(shortestRetry, stored.schedule.intervalMs);
        const schedule = { dueAt: clock.now() + intervalMs, intervalMs: stored.schedule.intervalMs };
        if (await store.reschedule(ref, schedule, stored.task.version)) return;
        stored = await store.get(ref);
      }
    } catch (error) {
      if (!(error instanceof RecordError)) pause(error);
    }
  };

  /**
   * The fault is in this task's record, not in the store: nobody else waits for it. Only the lease can be moved
   * without reading the record, so it is prolonged from where it ends. A restart tries again at once.
   */
  const setAside = async (ref: TaskRef, leasedUntil: number, reason: RecordError): Promise<void> => {
    log.error(
      { adapter, err: reason },
      'a task can’t be followed, as its record is at fault; it is left alone for an hour',
    );
    await store.lease(ref, leasedUntil, leasedUntil + setAsideFor).catch(pause);
  };

  /** Leaves the store alone for a while: 1 s, then twice as long each time, at most 30 s. */
  const pause = (error: unknown): void => {
    if (stopped || clock.monotonic() < retryAt) return;
    if (backoff === 0) log.warn({ adapter, err: error }, 'the store fails; the scheduler tries again');
    backoff = Math.min(longestBackoff, backoff === 0 ? firstBackoff : backoff * 2);
    retryAt = clock.monotonic() + backoff;
    lookAt = Math.min(lookAt, clock.now());
  };

  return {
    wake,
    async stop() {
      stopped = true;
      cancelTimer();
      await round;
      await Promise.all([...underWay.values()].map(({ ended }) => ended));
    },
  };
}
