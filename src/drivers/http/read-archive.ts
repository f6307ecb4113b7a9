// The body of a reply that is an archive: one entry read as the step says, or a list of them.

import type { Json } from '../../exact-json.ts';
import type { HttpStep } from './compiled.ts';
import type { EntryPattern } from './entry-pattern.ts';
import { keptText } from './extent.ts';
import { decodeText, type ReadBody, type ReplyFacts, readBody, unreadable } from './read-body.ts';
import { unzip } from './unzip.ts';

export type ReadArchive =
  | { kind: 'read'; read: ReadBody; truncated: boolean; bytes: number | undefined }
  | { kind: 'too_large' };

/** @param cap most bytes of what is taken out. */
export async function readArchive(
  step: HttpStep,
  archive: Buffer,
  pattern: EntryPattern,
  cap: number,
  facts: ReplyFacts,
): Promise<ReadArchive> {
  const unzipped = await unzip(archive, pattern, cap, step.keep);
  if (unzipped.kind === 'too_large') return unzipped;
  if (unzipped.kind === 'unreadable') {
    // A page that says what went wrong is quoted; an archive is not.
    const text = archive[0] === 0x50 ? '' : decodeText(archive.subarray(0, 4096));
    return { kind: 'read', read: unreadable(unzipped.why, facts, text), truncated: false, bytes: undefined };
  }
  const { entries } = unzipped;
  const truncated = entries.some(({ cut }) => cut);
  const bytes = entries.every(({ complete }) => complete)
    ? entries.reduce((sum, { seen }) => sum + seen, 0)
    : undefined;
  const list: Json[] = [];
  for (const entry of entries) {
    const read = readBody(step.read, keptText(step, entry), facts);
    if (read.unreadable !== undefined) {
      const named = `${read.unreadable} (in ${JSON.stringify(entry.name.slice(0, 100))})`;
      return { kind: 'read', read: { ...read, unreadable: named }, truncated, bytes };
    }
    if (!pattern.many) return { kind: 'read', read, truncated, bytes };
    list.push({ name: entry.name, body: read.body });
  }
  return { kind: 'read', read: { body: list }, truncated, bytes };
}
