// Task ids and keys. Ids sort by time and can't be guessed; keys are what upstreams may see.

import { randomBytes, randomUUID } from 'node:crypto';

const alphabet = '0123456789abcdefghijklmnopqrstuv';

/**
 * 6 bytes of time and 16 random ones in lower-case base32hex: 36 characters of `[0-9a-v]`. Sorts by creation
 * time, so the store appends instead of scattering, and is legal in the `Mcp-Name` header.
 */
export function newTaskId(now: number): string {
  const bytes = Buffer.concat([Buffer.alloc(6), randomBytes(16)]);
  bytes.writeUIntBE(now, 0, 6);
  let id = '';
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      id += alphabet[(held >> bits) & 31];
      held &= (1 << bits) - 1;
    }
  }
  return id + alphabet[(held << (5 - bits)) & 31];
}

/** A lower-case UUID v4: legal as idempotency key, job name, label, header and file name. */
export function newTaskKey(): string {
  return randomUUID();
}

// A line of the log is JSON text: `\n` before an id is two characters there.
const taskId = /(?<=^|[^0-9A-Za-z]|\\[bfnrt])[0-9a-v]{36}(?![0-9A-Za-z])/g;

/** Text for the log: an id may act as a token of its task, and messages of others may quote one. */
export function withoutTaskIds(text: string): string {
  return text.replace(taskId, '[task id]');
}
