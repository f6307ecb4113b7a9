// Ends tasks past their deadline whose adapter can't be asked: a lane waits for its upstream's budget, a deadline must not.

import type { Clock } from '../clock.ts';
import { StoreError } from '../errors.ts';
import type { Log } from '../observability/log.ts';
import { RecordError, type Store } from '../stores/store.ts';
import { refKey, type TaskRef } from '../tasks/task.ts';

export interface DeadlineOptions {
  store: Pick<Store, 'pastDeadline' | 'lease'>;
  clock: Clock;
  log: Pick<Log, 'warn' | 'error'>;
  /** Ends a leased task that is past its deadline. */
  expire(ref: TaskRef): Promise<void>;
  leaseMs: number;
  signal: AbortSignal;
}

const sweepEvery = 10_000;
/** A lane ends a task at its deadline, after a last look; only what is later than this is swept. */
const lateBy = 10_000;
const slice = 64;

/** Sweeps every ten seconds until `signal` aborts. */
export async function endOverdue({
  store,
  clock,
  log,
  expire,
  leaseMs,
  signal,
}: DeadlineOptions): Promise<void> {
  /** Tasks whose record can't be read or written: they are purged when they expire. */
  const unreadable = new Set<string>();
  let failing = false;
  for (;;) {
    await clock.sleep(sweepEvery, signal);
    if (signal.aborted) return;
    try {
      await sweep();
      failing = false;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (!failing) log.warn({ err: error }, 'tasks past their deadline could not be ended');
      failing = true;
    }
  }

  async function sweep(): Promise<void> {
    for (let ended = slice; ended === slice && !signal.aborted; ) {
      const now = clock.now();
      const refs = await store.pastDeadline(now - lateBy, slice + unreadable.size);
      const known = refs.filter((ref) => !unreadable.has(refKey(ref))).slice(0, slice);
      ended = (await Promise.all(known.map((ref) => end(ref, now)))).filter(Boolean).length;
    }
  }

  async function end(ref: TaskRef, now: number): Promise<boolean> {
    if (!(await store.lease(ref, now, now + leaseMs))) return false;
    try {
      await expire(ref);
      return true;
    } catch (error) {
      if (!(error instanceof RecordError)) throw error;
      unreadable.add(refKey(ref));
      log.error({ err: error }, 'a task past its deadline is left to be purged');
      return false;
    }
  }
}
