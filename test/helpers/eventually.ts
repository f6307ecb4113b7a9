// Waiting for a condition instead of sleeping.

/** Calls `read` until `accept` holds; fails with the last value after `limitMs`. */
export async function eventually<T>(
  read: () => T | Promise<T>,
  accept: (value: T) => boolean,
  limitMs = 10_000,
): Promise<T> {
  const until = performance.now() + limitMs;
  for (;;) {
    const value = await read();
    if (accept(value)) return value;
    if (performance.now() > until) throw new Error(`still ${JSON.stringify(value)} after ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
