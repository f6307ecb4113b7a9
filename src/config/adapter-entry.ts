// One line of `adapters:`, from the settings file, a variable or a flag.

import { isAbsolute, resolve } from 'node:path';
import type { Problem } from '../errors.ts';
import type { Path } from './driver-format.ts';

/** One line of `adapters:`, not yet resolved to files. */
export interface AdapterEntry {
  /** Name of a shipped adapter, or an absolute path. */
  use: { kind: 'shipped'; name: string } | { kind: 'path'; path: string };
  /** As it was written, for messages. */
  written: string;
  as: string | undefined;
  prefix: string;
  /** Adapter's name of a variable to ours. */
  env: { readonly [name: string]: string };
  tools: readonly string[] | undefined;
  /** A problem at the place of the entry. */
  problem(path: Path, message: string, hint?: string): Problem;
}

/** A bare word is a shipped adapter; anything with a slash or an ending is a path. */
export function parseUse(use: string, folder: string): AdapterEntry['use'] {
  if (/^[A-Za-z][A-Za-z0-9_-]*$/.test(use)) return { kind: 'shipped', name: use };
  return { kind: 'path', path: isAbsolute(use) ? use : resolve(folder, use) };
}
