// Compiles `timing`, `withoutTasks` and `limits`: defaults and bounds.

import { formatDuration } from '../duration.ts';
import type { Limits, Timing, Tool } from './adapter.ts';
import type { RawAdapter, RawTiming, RawTool } from './adapter-schema.ts';
import type { FileContext } from './compile-context.ts';
import type { Path } from './driver-format.ts';
import { defaultConcurrency } from './limits.ts';
import { parseDuration } from './units.ts';

const second = 1000;
const minute = 60 * second;
const day = 24 * 60 * minute;

/** A duration that must lie between two bounds, both in milliseconds. */
export function durationBetween(
  text: string,
  [low, high]: readonly [number, number],
  path: Path,
  context: FileContext,
): number {
  const ms = parseDuration(text) ?? 0;
  if (ms < low || ms > high)
    context.problem(path, `must be from ${formatDuration(low)} to ${formatDuration(high)}`);
  return ms;
}

export function compileTiming(raw: RawTiming | undefined, path: Path, context: FileContext): Timing {
  const read = (
    field: 'every' | 'max' | 'timeout' | 'keep' | 'settle',
    fallback: number,
    low: number,
    high: number,
  ) => {
    const text = raw?.[field];
    if (text === undefined) return fallback;
    const ms = parseDuration(text) ?? 0;
    if (ms < low) context.problem([...path, field], `must be at least ${formatDuration(low)}`);
    if (ms > high) context.problem([...path, field], `must be at most ${formatDuration(high)}`);
    return ms;
  };
  const every = read('every', 5 * second, 100, day);
  const max = read('max', Math.max(minute, every), 100, day);
  const timeout = read('timeout', day, second, 365 * day);
  const keep = read('keep', day, second, 365 * day);
  const settle = read('settle', 0, 0, 5 * second);
  if (max < every)
    context.problem([...path, 'max'], `must not be shorter than every (${formatDuration(every)})`);
  if (timeout < every)
    context.problem(
      [...path, raw?.timeout === undefined ? 'every' : 'timeout'],
      'timeout must not be shorter than every',
    );
  return { every, max, timeout, keep, settle, onTimeout: raw?.onTimeout ?? 'leave' };
}

export function compileWithoutTasks(
  raw: RawTool['withoutTasks'],
  path: Path,
  context: FileContext,
): Tool['withoutTasks'] {
  if (raw === 'reject') return { mode: 'reject' };
  if (raw === undefined || raw === 'wait') return { mode: 'wait', waitMs: 45 * second };
  const waitMs = parseDuration(raw.wait) ?? 0;
  if (waitMs > 10 * minute) context.problem([...path, 'wait'], 'must be at most 10m');
  else if (waitMs > 55 * second)
    context.warning([...path, 'wait'], 'many clients give up after 60s', { hint: 'stay under 55s' });
  return { mode: 'wait', waitMs };
}

export function compileLimits(raw: RawAdapter['limits'], context: FileContext): Limits {
  const rate = raw?.rate;
  const perMs = rate === undefined ? 0 : (parseDuration(rate.per) ?? 0);
  if (rate !== undefined && (perMs < 1 || perMs > 365 * day))
    context.problem(['limits', 'rate', 'per'], 'must be from 1ms to 365d');
  return { concurrency: raw?.concurrency ?? defaultConcurrency, rate: rate && { calls: rate.calls, perMs } };
}
