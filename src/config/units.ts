// Durations and sizes as they are written in files: `30s`, `1.5h`, `256KiB`.

import { durationUnits } from '../duration.ts';

export const durationPattern = /^\d+(\.\d+)?(ms|s|m|h|d)$/;
export const sizePattern = /^\d+(\.\d+)?(KiB|MiB)$/;

const bytes: { [unit: string]: number } = { KiB: 1024, MiB: 1024 * 1024 };

/** Whole milliseconds of `250ms`, `2.5s`, `1m`, `6h`, `7d`, at most 2^53; undefined when it is no duration. */
export function parseDuration(text: string): number | undefined {
  return durationPattern.test(text) ? scaled(text, durationUnits) : undefined;
}

/** Whole bytes of `64KiB` or `1.5MiB`; undefined when it is no size. */
export function parseSize(text: string): number | undefined {
  return sizePattern.test(text) ? scaled(text, bytes) : undefined;
}

function scaled(text: string, units: { readonly [unit: string]: number }): number | undefined {
  const unit = text.replace(/^[\d.]+/, '');
  const value = Math.round(Number(text.slice(0, -unit.length)) * (units[unit] ?? Number.NaN));
  // Beyond every bound there is, so that it is refused as too much.
  return Number.isNaN(value) ? undefined : Math.min(value, Number.MAX_SAFE_INTEGER);
}
