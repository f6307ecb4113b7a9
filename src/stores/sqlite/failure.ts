// Turns what SQLite and the file system throw into a StoreError that says what is wrong and what to do.

import { type ErrorCode, StoreError, sentenceOf } from '../../errors.ts';

/** A StoreError as it crosses the border between threads. */
export interface Failure {
  code: ErrorCode;
  message: string;
  fix?: string;
}

/** Primary result codes of SQLite. */
const sqlite = { busy: 5, readOnly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 };

/** @param path the database file, named in the message. */
export function toFailure(error: unknown, path: string): Failure {
  if (error instanceof StoreError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.fix === undefined ? {} : { fix: error.fix }),
    };
  }
  const { errcode, errstr, code } = error as { errcode?: number; errstr?: string; code?: string };
  // The low byte is the primary code; the rest says more than a person can use.
  switch (errcode === undefined ? undefined : errcode & 0xff) {
    case sqlite.full:
      return {
        code: 'store_full',
        message: `there is no space left for the store ${path}`,
        fix: 'Free some disk space: writing goes on by itself then, and reading never stopped.',
      };
    case sqlite.corrupt:
    case sqlite.notADatabase:
      return {
        code: 'store_corrupt',
        message: `the store ${path} is damaged or not a database: ${errstr}`,
        fix: 'Keep the file, and put a back-up in its place or start with a new file.',
      };
    case sqlite.readOnly:
      return noPermission(path);
    case sqlite.cannotOpen:
      return {
        code: 'store_unreadable',
        message: `the store ${path} can't be opened: ${errstr}`,
        fix: 'Check that it is a file in a directory that taskferry may read and write.',
      };
    case sqlite.busy:
      return {
        code: 'store_failed',
        message: `another program keeps the store ${path} locked`,
        fix: 'Close the program that writes to the file; taskferry must be its only writer.',
      };
    case sqlite.ioError:
      return {
        code: 'store_failed',
        message: `the disk failed under the store ${path}: ${errstr}`,
        fix: 'Check the disk and the file system.',
      };
  }
  switch (code) {
    case 'ENOENT':
      return {
        code: 'store_unreadable',
        message: `the directory of the store ${path} does not exist`,
        fix: 'Create it, or name another file with --store sqlite:PATH.',
      };
    case 'ENOTDIR':
    case 'EISDIR':
      return {
        code: 'store_unreadable',
        message: `${path} can't be a store: ${code === 'EISDIR' ? 'it is a directory' : 'a part of its path is a file'}`,
        fix: 'Name a file with --store sqlite:PATH.',
      };
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return noPermission(path);
    case 'ENOSPC':
      return {
        code: 'store_full',
        message: `there is no space left for the store ${path}`,
        fix: 'Free some disk space.',
      };
  }
  const reason = sentenceOf(error);
  return { code: 'store_failed', message: `the store ${path} failed: ${reason}` };
}

export function toStoreError(failure: Failure, cause?: unknown): StoreError {
  return new StoreError(failure.code, failure.message, {
    ...(failure.fix === undefined ? {} : { fix: failure.fix }),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Runs `action`; whatever it throws becomes a StoreError. */
export function guarded<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw error instanceof StoreError ? error : toStoreError(toFailure(error, path), error);
  }
}

function noPermission(path: string): Failure {
  return {
    code: 'store_unreadable',
    message: `taskferry may not read and write the store ${path}`,
    fix: 'Give the user that runs taskferry the right to write the file and its directory.',
  };
}
