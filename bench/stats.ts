// Percentiles and medians.

/** @param percent from 0 to 100. NaN when there are no values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((percent / 100) * sorted.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The median of one field over several rounds. */
export function medianOf<Round>(rounds: readonly Round[], field: (round: Round) => number): number {
  return median(rounds.map(field));
}
