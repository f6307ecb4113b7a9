// Waiting for work of somebody else's for so long and no longer.

import type { Clock } from '../clock.ts';

/** What `work` gives, or undefined when it takes longer than `ms`; it goes on then, but nobody wants its result. */
export async function within<T>(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  work: Promise<T>,
): Promise<T | undefined> {
  const done = new AbortController();
  const late = clock.sleep(ms, done.signal).then(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}
