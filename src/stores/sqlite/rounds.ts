// Group commit: all operations that wait go into one transaction, so that they share one write to the disk.
//
// The usual case is optimistic: no savepoints, one commit. When any operation throws, or the commit does, the
// transaction is rolled back and each operation runs again in its own: one that can't succeed never takes its
// neighbours down, and nothing is answered before it is committed.

import type { DatabaseSync } from 'node:sqlite';
import type { WriteConnections } from './database.ts';
import { toFailure } from './failure.ts';
import { isDurable, type Operation, type Result } from './messages.ts';
import { prepareOperations } from './operations.ts';

/** Commits the operations, in order, and gives their results in the same order. Never throws. */
export type RunRound = (operations: readonly Operation[]) => Result[];

export function createRounds(connections: WriteConnections, file: string): RunRound {
  const durable = { db: connections.durable, apply: prepareOperations(connections.durable) };
  const hint = { db: connections.hint, apply: prepareOperations(connections.hint) };

  const attempt = (operations: readonly Operation[]): Result[] => {
    const { db, apply } = operations.some(isDurable) ? durable : hint;
    return transact(db, () => operations.map((operation) => ({ ok: true, answer: apply(operation) })));
  };

  return (operations) => {
    try {
      return attempt(operations);
    } catch (error) {
      if (operations.length === 1) return [{ ok: false, failure: toFailure(error, file) }];
    }
    return operations.map((operation) => {
      try {
        return attempt([operation])[0] as Result;
      } catch (error) {
        return { ok: false, failure: toFailure(error, file) };
      }
    });
  };
}

function transact<T>(db: DatabaseSync, body: () => T): T {
  // IMMEDIATE: a transaction that began as a reader may find that it can't become a writer any more.
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = body();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    // Some errors (a full disk) have ended the transaction already.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
