// The files of a store on disk: where they really are, and that only their owner may read them.

import { closeSync, openSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { StoreError } from '../../errors.ts';

/** The real path of `path`, whose file need not exist yet: two names of one file must share one lock. */
export function realFile(path: string): string {
  const full = resolve(path);
  try {
    return realpathSync(full);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return join(realpathSync(dirname(full)), basename(full));
  }
}

/**
 * Creates an empty file with mode 0600 unless there is one. An existing file is not opened: closing it again
 * would drop the locks that SQLite holds on it in this process. SQLite gives its side files the same mode.
 */
export function createPrivateFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (statSync(file).isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
  }
}

/**
 * Remembers which file `file` names now. An open file that loses its name goes on working, for this process alone.
 * @param what names the file in the error.
 * @returns a function that throws StoreError `store_failed` when the path names no file or another one.
 */
export function watchFile(file: string, what: string): () => void {
  const identity = (): string | undefined => {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false });
    return found && `${found.dev}:${found.ino}`;
  };
  const opened = identity();
  return () => {
    if (identity() === opened) return;
    throw new StoreError('store_failed', `${what} was removed or replaced while taskferry runs`, {
      fix: 'Restart taskferry.',
    });
  };
}

/** Bytes of the database itself. */
export function sizeOf(file: string): number {
  return statSync(file).size;
}

/** True when the last process didn't close the store: a clean close leaves no write-ahead log. */
export function wasUnclean(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
