// Time as a dependency: wall time for what is stored, monotonic time for intervals, one way to wait.

export interface Clock {
  /** Milliseconds since the epoch; may jump. Only for what is stored or shown. */
  now(): number;
  /** Milliseconds from an arbitrary start; never goes back. For intervals inside one process. */
  monotonic(): number;
  /** Calls `run` once after `ms`, unless cancelled. Waits over 2^31-1 ms are cut into shorter ones. */
  after(ms: number, run: () => void): Cancel;
  /** Resolves after `ms`, or at once when `signal` aborts (never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export type Cancel = () => void;

/** The longest wait that one timer of the platform can hold; a longer one fires at once. */
const longestTimer = 2 ** 31 - 1;

function after(ms: number, run: () => void): Cancel {
  let timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    const slice = Math.min(left, longestTimer);
    timer = setTimeout(() => (left > slice ? arm(left - slice) : run()), slice);
  };
  arm(Math.max(0, ms));
  return () => clearTimeout(timer);
}

export function sleepWith(clock: Pick<Clock, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', stop);
      resolve();
    });
    const stop = (): void => {
      cancel();
      resolve();
    };
    signal?.addEventListener('abort', stop, { once: true });
  });
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after,
  sleep: (ms, signal) => sleepWith({ after }, ms, signal),
};
