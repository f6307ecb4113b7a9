// What the main thread and the writing thread say to each other: plain data that structured cloning carries.

import type { SQLOutputValue } from 'node:sqlite';
import type { SavedRow, TaskRow } from '../task-row.ts';
import type { Failure } from './failure.ts';

export interface StoredRow extends TaskRow {
  outcome: string | null;
  due_at: number | null;
  interval_ms: number | null;
}

/** A row of `selectStored`, whose columns are these; node:sqlite gives it no type. */
export function asStoredRow(row: Record<string, SQLOutputValue>): StoredRow {
  return row as unknown as StoredRow;
}

/** One change. `durable` says whether it must be on disk before its answer. */
export type Operation =
  | {
      kind: 'insert';
      row: TaskRow;
      dueAt: number;
      intervalMs: number;
      deadline: number;
      leaseUntil: number;
      text: string;
    }
  | { kind: 'save'; row: SavedRow; outcome: string | null; schedule: SaveSchedule; durable: boolean }
  | { kind: 'remove'; caller: string; id: string }
  | { kind: 'reschedule'; caller: string; id: string; dueAt: number; intervalMs: number; version: number }
  | { kind: 'lease'; caller: string; id: string; now: number; until: number }
  | { kind: 'releaseLeases' }
  | { kind: 'pullForward'; now: number }
  | {
      kind: 'spread';
      adapter: string;
      now: number;
      windowMs: number;
      done: number;
      total: number;
      limit: number;
    }
  | { kind: 'purge'; time: number; limit: number }
  | { kind: 'setting'; name: string; value: string }
  | { kind: 'check' };

export type SaveSchedule =
  | { kind: 'keep' }
  | { kind: 'none' }
  | { kind: 'due'; by: number }
  | { kind: 'set'; dueAt: number; intervalMs: number; deadline: number };

/** What an operation answers: a row that was there (insert), done or not, how many, the value. */
export type WriteAnswer = StoredRow | boolean | number | string | undefined;

export type Result = { ok: true; answer: WriteAnswer } | { ok: false; failure: Failure };

export type ToWorker = { kind: 'write'; operations: Operation[] } | { kind: 'close' };

export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'refused'; failure: Failure }
  /** In the order of the operations, over all messages. */
  | { kind: 'results'; results: Result[] };

export function isDurable(operation: Operation): boolean {
  switch (operation.kind) {
    case 'insert':
    case 'remove':
    case 'setting':
      return true;
    case 'save':
      return operation.durable;
    default:
      return false;
  }
}
