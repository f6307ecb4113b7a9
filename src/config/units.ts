// Durations and sizes as they are written in files: `30s`, `1.5h`, `256KiB`.

export const durationPattern = /^\d+(\.\d+)?(ms|s|m|h|d)$/;
export const sizePattern = /^\d+(\.\d+)?(KiB|MiB)$/;

const milliseconds: { [unit: string]: number } = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const bytes: { [unit: string]: number } = { KiB: 1024, MiB: 1024 * 1024 };

/** Whole milliseconds of `250ms`, `2.5s`, `1m`, `6h`, `7d`; undefined when it is no duration. */
export function parseDuration(text: string): number | undefined {
  return durationPattern.test(text) ? scaled(text, milliseconds) : undefined;
}

/** Whole bytes of `64KiB` or `1.5MiB`; undefined when it is no size. */
export function parseSize(text: string): number | undefined {
  return sizePattern.test(text) ? scaled(text, bytes) : undefined;
}

/** The shortest exact spelling, for messages: 90000 is `90s`, 3600000 is `1h`. */
export function formatDuration(ms: number): string {
  const unit = ['d', 'h', 'm', 's'].find((name) => ms > 0 && ms % (milliseconds[name] ?? 1) === 0) ?? 'ms';
  return `${ms / (milliseconds[unit] ?? 1)}${unit}`;
}

function scaled(text: string, units: { [unit: string]: number }): number | undefined {
  const unit = text.replace(/^[\d.]+/, '');
  const value = Math.round(Number(text.slice(0, -unit.length)) * (units[unit] ?? Number.NaN));
  return Number.isSafeInteger(value) ? value : undefined;
}
