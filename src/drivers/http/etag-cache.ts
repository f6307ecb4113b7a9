// Replies remembered for conditional requests: bounded in bytes, the least recently used ones go first.

import { createHash } from 'node:crypto';
import type { RawHeaders } from './exchange.ts';
import type { Prepared } from './plan.ts';

/** Most bytes that the replies of one adapter take. */
const mostBytes = 16 * 1024 * 1024;
/** What an entry takes beside its body: key, headers, bookkeeping. */
const entryBytes = 1024;

export interface Remembered {
  /** The upstream's own mark of this version. */
  etag: string;
  headers: RawHeaders;
  body: Buffer;
}

export interface EtagCache {
  get(key: string): Remembered | undefined;
  /** Replaces what was there; what is larger than the whole cache is not kept. */
  set(key: string, entry: Remembered): void;
  delete(key: string): void;
}

export function createEtagCache(limit = mostBytes): EtagCache {
  // A map keeps the order of insertion: the first entry is the one that was not used for longest.
  const entries = new Map<string, Remembered>();
  let held = 0;
  const drop = (key: string): void => {
    const entry = entries.get(key);
    if (entry === undefined) return;
    entries.delete(key);
    held -= sizeOf(entry);
  };
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key);
      entries.set(key, entry);
      return entry;
    },
    set(key, entry) {
      drop(key);
      if (sizeOf(entry) > limit) return;
      entries.set(key, entry);
      held += sizeOf(entry);
      for (const oldest of entries.keys()) {
        if (held <= limit) break;
        drop(oldest);
      }
    },
    delete: drop,
  };
}

function sizeOf({ body, headers }: Remembered): number {
  return entryBytes + body.length + JSON.stringify(headers).length;
}

/** The whole request is the key, credentials included; as a digest, so that it holds no secret. */
export function requestKey({ request }: Prepared): string {
  const { method, url, headers, sign } = request;
  return createHash('sha256')
    .update(JSON.stringify([method, url.href, Object.entries(headers).sort(), sign ?? null]))
    .digest('base64');
}
