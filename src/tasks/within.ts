// Waiting for work of somebody else's for so long and no longer.

import type { Clock } from '../clock.ts';

/** What `work` gives, or undefined when it takes longer than `ms`; it goes on then, but nobody wants its result. */
export function within<T>(clock: Pick<Clock, 'after'>, ms: number, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(undefined));
    work.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error) => {
        cancel();
        reject(error);
      },
    );
  });
}
