// Removes expired tasks, a little at a time, so that requests never wait for it.

import type { Clock } from '../clock.ts';
import type { Log } from '../observability/log.ts';
import type { Store } from '../stores/store.ts';

export interface PurgeOptions {
  store: Pick<Store, 'purge'>;
  clock: Clock;
  log: Pick<Log, 'warn'>;
  signal: AbortSignal;
}

const purgeEvery = 60_000;
const slice = 500;
/** Milliseconds between slices. */
const pauseBetween = 50;
/** Purges every minute until `signal` aborts. */
export async function purgeExpired({ store, clock, log, signal }: PurgeOptions): Promise<void> {
  let failing = false;
  for (;;) {
    await clock.sleep(purgeEvery, signal);
    if (signal.aborted) return;
    try {
      while (!signal.aborted && (await store.purge(clock.now(), slice)) === slice) {
        await clock.sleep(pauseBetween, signal);
      }
      failing = false;
    } catch (error) {
      if (!failing) log.warn({ err: error }, 'expired tasks could not be purged');
      failing = true;
    }
  }
}
