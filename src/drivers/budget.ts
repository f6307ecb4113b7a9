// How much an adapter may ask of its upstream: calls at once, calls per time, and a pause when it says "too many".

import type { Cancel, Clock } from '../clock.ts';

export interface BudgetLimits {
  /** Calls under way at once. */
  concurrency: number;
  /** At most `calls` starts in any stretch of `perMs`. Undefined: no limit. */
  rate: { calls: number; perMs: number } | undefined;
}

/** Gives a place back; calling it again does nothing. */
export type Release = () => void;

/** Who waits for a place: a caller whose job is being created or whose plain tool is called, or a task that is followed. */
export type Party = 'caller' | 'task';

export interface Budget {
  /**
   * Waits for a place: first come first served among callers and among tasks, who take turns with each other.
   * @throws BudgetEnded when `signal` aborts or the budget is closed first; nothing is used up then.
   */
  acquire(signal?: AbortSignal, party?: Party): Promise<Release>;
  /** How many calls of `acquire` would get a place at once. */
  free(): number;
  /**
   * How many tasks may be followed at once though nothing is free, since callers hold or want the places: half of
   * them, so that neither party starves. 0 when there are no callers or while the upstream is paused.
   */
  share(): number;
  /**
   * Wall time when it is worth asking for a place: now if there is one; when pause and rate allow one; in a
   * moment when all places are taken, since nobody knows when one is given back; never (`Infinity`) once closed.
   */
  nextFreeAt(): number;
  /** No call starts before `wallMs`. A pause is only ever prolonged; calls under way go on. */
  pauseUntil(wallMs: number): void;
  /** Ends all waiting and refuses what comes later. */
  close(): void;
}

/** The wait for a place ended without one. */
export class BudgetEnded extends Error {
  override readonly name = 'BudgetEnded';
}

/** Milliseconds between looks while all places are taken. */
const moment = 100;

interface Waiter {
  party: Party;
  grant(): void;
  fail(reason: BudgetEnded): void;
}

export function createBudget(limits: BudgetLimits, clock: Clock): Budget {
  const { concurrency, rate } = limits;
  const queue = new Set<Waiter>();
  /** Monotonic start times inside the current window, oldest first. */
  const starts: number[] = [];
  const running = { caller: 0, task: 0 };
  /** Who got the last place that both wanted. */
  let lastServed: Party = 'caller';
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let timer: Cancel | undefined;
  let closed = false;

  const taken = (): number => running.caller + running.task;

  /** Starts that the rate leaves right now. */
  const rateLeft = (now: number): number => {
    if (rate === undefined) return Number.POSITIVE_INFINITY;
    while (starts[0] !== undefined && now - starts[0] >= rate.perMs) starts.shift();
    return rate.calls - starts.length;
  };

  const startable = (now: number): number =>
    closed || now < pausedUntil ? 0 : Math.min(concurrency - taken(), rateLeft(now));

  /** Milliseconds until pause and rate allow a start; 0 when they do now. */
  const timeLeft = (now: number): number => {
    const oldest = rateLeft(now) > 0 ? undefined : starts[0];
    const rateWait = rate === undefined || oldest === undefined ? 0 : oldest + rate.perMs - now;
    return Math.max(0, pausedUntil - now, rateWait);
  };

  const begin = (party: Party): Release => {
    running[party]++;
    if (rate !== undefined) starts.push(clock.monotonic());
    let released = false;
    return () => {
      if (released) return;
      released = true;
      running[party]--;
      serve();
    };
  };

  const serve = (): void => {
    timer?.();
    timer = undefined;
    while (queue.size > 0 && startable(clock.monotonic()) >= 1) {
      const [first] = queue;
      const turn = lastServed === 'caller' ? 'task' : 'caller';
      const waiter = queue.values().find(({ party }) => party === turn) ?? first;
      if (waiter === undefined) break;
      lastServed = waiter.party;
      queue.delete(waiter);
      waiter.grant();
    }
    if (queue.size === 0 || taken() >= concurrency) return;
    // At least a millisecond: a timer may fire a little before the monotonic clock says so.
    timer = clock.after(Math.max(1, timeLeft(clock.monotonic())), serve);
  };

  return {
    acquire(signal, party = 'task') {
      if (closed) return Promise.reject(new BudgetEnded('the connection is closed'));
      if (signal?.aborted) return Promise.reject(new BudgetEnded('given up'));
      if (queue.size === 0 && startable(clock.monotonic()) >= 1) return Promise.resolve(begin(party));
      return new Promise((resolve, reject) => {
        const giveUp = (): void => waiter.fail(new BudgetEnded('given up'));
        const waiter: Waiter = {
          party,
          grant() {
            signal?.removeEventListener('abort', giveUp);
            resolve(begin(party));
          },
          fail(reason) {
            signal?.removeEventListener('abort', giveUp);
            queue.delete(waiter);
            reject(reason);
          },
        };
        signal?.addEventListener('abort', giveUp, { once: true });
        queue.add(waiter);
        serve();
      });
    },
    free: () => Math.max(0, startable(clock.monotonic()) - queue.size),
    share() {
      if (closed || clock.monotonic() < pausedUntil) return 0;
      const callers = running.caller > 0 || queue.values().some(({ party }) => party === 'caller');
      return callers ? Math.max(1, Math.floor(concurrency / 2)) : 0;
    },
    nextFreeAt() {
      if (closed) return Number.POSITIVE_INFINITY;
      const wait = timeLeft(clock.monotonic());
      return clock.now() + (taken() >= concurrency ? Math.max(wait, moment) : wait);
    },
    pauseUntil(wallMs) {
      // Kept on the monotonic clock, so that a jump of the wall clock neither ends nor prolongs it.
      pausedUntil = Math.max(pausedUntil, clock.monotonic() + (wallMs - clock.now()));
      if (queue.size > 0) serve();
    },
    close() {
      closed = true;
      timer?.();
      timer = undefined;
      for (const waiter of [...queue]) waiter.fail(new BudgetEnded('the connection is closed'));
    },
  };
}
