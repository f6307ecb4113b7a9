// A wall clock that doesn't jump: a correction of the system's time counts once it has lasted for a minute.
//
// Deadlines and due times are wall times, as they outlive the process. Were a jump believed at once, a clock that
// is hours ahead for some seconds would end every task, and one that was set back would stop every poll.

import { type Clock, systemClock } from './clock.ts';

export interface SteadyClock extends Clock {
  /** Calls `run` whenever a clock that was set back by more than a minute is believed. */
  onSetBack(run: () => void): void;
}

/** Smaller corrections are believed at once. Milliseconds. */
const toleratedJump = 60_000;
/** Milliseconds for which a larger one must last. */
const doubtFor = 60_000;

export function createSteadyClock(system: Clock = systemClock): SteadyClock {
  const listeners: (() => void)[] = [];
  /** Wall time less monotonic time, as it is believed. */
  let offset = system.now() - system.monotonic();
  let doubted: { offset: number; since: number } | undefined;

  const now = (): number => {
    const monotonic = system.monotonic();
    const seen = system.now() - monotonic;
    if (Math.abs(seen - offset) <= toleratedJump) {
      offset = seen;
      doubted = undefined;
    } else if (doubted === undefined || Math.abs(seen - doubted.offset) > toleratedJump) {
      doubted = { offset: seen, since: monotonic };
    } else if (monotonic - doubted.since >= doubtFor) {
      const setBack = seen < offset;
      offset = seen;
      doubted = undefined;
      if (setBack) for (const run of listeners) run();
    }
    return monotonic + offset;
  };

  return { ...system, now, onSetBack: (run) => void listeners.push(run) };
}
