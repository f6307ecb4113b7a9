// What every benchmark gets, and how rounds are run.

import type { Machine } from './report.ts';

export interface Bench {
  /** For files; on a real disk, removed at the end. */
  folder: string;
  facts: Machine;
  /** Event-loop delays at the heaviest points, filled by the blocks for the summary at the end. */
  loop: { point: string; p50: number; p99: number; max: number }[];
}

export type Block = (bench: Bench) => Promise<void>;

const roundCount = 3;

/** Runs `round` three times. Whatever is compared is measured within one round, so that both see the same machine. */
export async function rounds<Result>(round: () => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (let i = 0; i < roundCount; i++) results.push(await round());
  return results;
}
