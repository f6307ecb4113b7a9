// Where tasks are kept, as settings and flags write it: `sqlite:PATH`, so far the only kind.

import { resolve } from 'node:path';

export interface StoreAddress {
  kind: 'sqlite';
  /** Absolute. */
  path: string;
}

export const storePattern = /^sqlite:(.+)$/s;

/** @param folder where a relative path starts. @returns undefined when the text names no store. */
export function parseStore(text: string, folder: string): StoreAddress | undefined {
  const path = storePattern.exec(text)?.[1];
  return path === undefined ? undefined : { kind: 'sqlite', path: resolve(folder, path) };
}
