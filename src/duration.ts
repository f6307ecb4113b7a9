// How durations are written, in files and in messages alike: `30s`, `1h`, `1500ms`.

/** Units of a duration in milliseconds. */
export const durationUnits: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** The shortest exact spelling: 90000 is `90s`, 3600000 is `1h`. */
export function formatDuration(ms: number): string {
  const unit = ['d', 'h', 'm', 's'].find((name) => ms > 0 && ms % (durationUnits[name] ?? 1) === 0) ?? 'ms';
  return `${ms / (durationUnits[unit] ?? 1)}${unit}`;
}
