// Reads the text of a file that somebody wrote: a regular one, and only as much as can be one of ours.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** Larger files are refused; the largest adapter known has 20 KB. */
const maxFileBytes = 1024 * 1024;

/** A file of another kind, or a larger one. The message is for people. */
export class UnusableFile extends Error {}

/**
 * UTF-8 text of a file of at most {@link maxFileBytes}. Devices and pipes are refused: they may have no end.
 * @throws UnusableFile, and what the file system throws
 */
export function readTextFile(file: string): string {
  // A pipe would not even open until somebody writes to it.
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(handle);
    if (found.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
    if (!found.isFile()) throw new UnusableFile('is no regular file');
    const bytes = Buffer.alloc(Math.min(found.size, maxFileBytes) + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(handle, bytes, length, bytes.length - length, null);
    if (length > maxFileBytes) throw new UnusableFile(`the file is larger than ${maxFileBytes} bytes`);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}
