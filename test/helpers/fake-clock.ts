// A clock that stands still until the test moves it.

import { type Clock, sleepWith } from '../../src/clock.ts';

export interface FakeClock extends Clock {
  /** Moves both clocks on; runs the timers that come due, in order, and what they set off between them. */
  advance(ms: number): Promise<void>;
  /** Moves the wall clock alone, as a correction of the system's time does. */
  jump(ms: number): void;
  /** Timers that wait. */
  timers(): number;
}

interface Timer {
  at: number;
  run: () => void;
}

/** @param start the wall time to begin with, in milliseconds since the epoch. */
export function createFakeClock(start = 1_800_000_000_000): FakeClock {
  let elapsed = 0;
  let offset = start;
  const waiting = new Set<Timer>();

  const after = (ms: number, run: () => void): (() => void) => {
    const timer = { at: elapsed + Math.max(0, ms), run };
    waiting.add(timer);
    return () => waiting.delete(timer);
  };
  const next = (until: number): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of waiting) {
      if (timer.at <= until && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  };

  return {
    now: () => offset + elapsed,
    monotonic: () => elapsed,
    after,
    sleep: (ms, signal) => sleepWith({ after }, ms, signal),
    async advance(ms) {
      const until = elapsed + ms;
      await settle();
      for (let timer = next(until); timer !== undefined; timer = next(until)) {
        waiting.delete(timer);
        elapsed = Math.max(elapsed, timer.at);
        timer.run();
        await settle();
      }
      elapsed = until;
    },
    jump(ms) {
      offset += ms;
    },
    timers: () => waiting.size,
  };
}

/** Lets promises and what they start in the same turns come to rest. Work outside the process is not awaited. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
