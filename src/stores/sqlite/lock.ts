// One process per store: an exclusive SQLite transaction on a side file, which the system ends with the process.

import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../../errors.ts';
import { createPrivateFile, watchFile } from './file.ts';

export interface StoreLock {
  /** @throws StoreError when the lock no longer keeps others out, as its file was removed or replaced. */
  refuseMoved(): void;
  release(): void;
}

/**
 * Takes the lock of the database `file` (a real path) by way of `<file>.lock`, which stays behind: removing it
 * would let a second process lock a new file while a third still holds the old one.
 * @throws StoreError `store_locked` when another process, or this one, has it.
 */
export function lockStore(file: string): StoreLock {
  const lockFile = `${file}.lock`;
  createPrivateFile(lockFile);
  const refuseMoved = watchFile(lockFile, `the lock file ${lockFile}`);
  const db = new DatabaseSync(lockFile, { timeout: 0 });
  try {
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    db.close();
    if ((error as { errcode?: number }).errcode !== 5) throw error;
    throw new StoreError('store_locked', `another taskferry process is using the store ${file}`, {
      fix: 'Stop that process, or give this one its own file with --store sqlite:PATH.',
      cause: error,
    });
  }
  return { refuseMoved, release: () => db.close() };
}
