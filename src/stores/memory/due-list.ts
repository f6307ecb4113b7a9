// The schedule of one adapter for the in-memory store: entries in the order in which they are due.

import type { TaskRef } from '../../tasks/task.ts';

export interface DueEntry extends TaskRef {
  dueAt: number;
  intervalMs: number;
  deadline: number;
  /** 0 when nobody has claimed it. */
  leaseUntil: number;
}

export interface DueList {
  add(entry: DueEntry): void;
  remove(entry: DueEntry): void;
  size(): number;
  /** Up to `limit` entries due at `time` whose lease is over by then, most overdue first. */
  before(time: number, limit: number): TaskRef[];
  /** Entries due before `now`, leased or not. */
  overdue(now: number): DueEntry[];
  next(): number | undefined;
}

export function createDueList(): DueList {
  const entries: DueEntry[] = [];

  /** Index of the first entry that doesn't come before `entry`. */
  const indexOf = (entry: DueEntry): number => {
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = entries[middle];
      if (other !== undefined && compare(other, entry) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  return {
    add: (entry) => void entries.splice(indexOf(entry), 0, entry),
    remove: (entry) => void entries.splice(indexOf(entry), 1),
    size: () => entries.length,
    before(time, limit) {
      const found: TaskRef[] = [];
      for (const { caller, id, dueAt, leaseUntil } of entries) {
        if (dueAt > time || found.length >= limit) break;
        if (leaseUntil <= time) found.push({ caller, id });
      }
      return found;
    },
    overdue(now) {
      const end = entries.findIndex((entry) => entry.dueAt >= now);
      return end < 0 ? [...entries] : entries.slice(0, end);
    },
    next() {
      let soonest: number | undefined;
      for (const { dueAt, leaseUntil } of entries) {
        if (soonest !== undefined && dueAt >= soonest) break;
        soonest = Math.min(soonest ?? Number.POSITIVE_INFINITY, Math.max(dueAt, leaseUntil));
      }
      return soonest;
    },
  };
}

function compare(a: DueEntry, b: DueEntry): number {
  return a.dueAt - b.dueAt || order(a.id, b.id) || order(a.caller, b.caller);
}

function order(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
