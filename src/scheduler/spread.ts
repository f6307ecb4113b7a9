// After a restart many tasks are overdue at once: they are spread over a while, so that upstreams see no burst.

import type { Clock } from '../clock.ts';
import type { Log } from '../observability/log.ts';
import type { Store } from '../stores/store.ts';

export interface SpreadOptions {
  store: Pick<Store, 'counts' | 'scheduledAdapters' | 'spread'>;
  clock: Pick<Clock, 'now'>;
  log: Pick<Log, 'info' | 'warn'>;
  /** Calls that an adapter's budget lets start at once. */
  room(adapter: string): number;
  /** Undefined when the adapter has no rate limit. */
  callsPerSecond(adapter: string): number | undefined;
}

const shortestWindow = 5_000;
/** A longer one would only delay: the budget holds back whatever is still too much. */
const longestWindow = 300_000;
/** Calls per second of one place in the budget when no rate is given: polls take about 100 ms. */
const callsPerPlace = 10;

/** Spreads each adapter's overdue tasks. A store that fails is logged and left: the budgets hold anyway. */
export async function spreadBacklog({
  store,
  clock,
  log,
  room,
  callsPerSecond,
}: SpreadOptions): Promise<void> {
  try {
    const active = new Map<string, number>();
    for (const { adapter, stage, count } of await store.counts()) {
      if (stage !== 'ended') active.set(adapter, (active.get(adapter) ?? 0) + count);
    }
    for (const adapter of await store.scheduledAdapters()) {
      const tasks = active.get(adapter) ?? 0;
      const places = room(adapter);
      // What the budget takes at once needs no spreading.
      if (tasks <= places) continue;
      const rate = callsPerSecond(adapter) ?? places * callsPerPlace;
      const window = Math.min(longestWindow, Math.max(shortestWindow, (tasks / rate) * 1_000));
      const moved = await store.spread(adapter, clock.now(), Math.round(window));
      if (moved > 0)
        log.info({ adapter, tasks: moved, windowMs: Math.round(window) }, 'overdue tasks were spread');
    }
  } catch (error) {
    log.warn({ err: error }, 'overdue tasks could not be spread');
  }
}
