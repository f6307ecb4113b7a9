// Entries out of a zip archive in memory, bounded in number and in what they unfold to. Their names are never paths.

import type { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl';
import type { EntryPattern } from './entry-pattern.ts';
import { type Keep, type Kept, keepPart } from './kept-part.ts';

/** Largest archive, as it arrives. */
export const largestArchive = 16 * 1024 * 1024;
const mostEntries = 2_000;
/** Bytes that are unfolded in all, where only an end of each entry is kept. */
const mostThrough = 1024 * 1024 * 1024;

export type Unzipped =
  | { kind: 'entries'; entries: readonly ({ name: string } & Kept)[] }
  | { kind: 'too_large' }
  /** `why` completes "the reply (200, application/zip) …". */
  | { kind: 'unreadable'; why: string };

class TooLarge extends Error {}
class Unusable extends Error {}

/**
 * @param cap most bytes of all entries that fit, as they are kept.
 * @param keep one end of each entry is kept. Undefined: all of it.
 */
export async function unzip(
  archive: Buffer,
  pattern: EntryPattern,
  cap: number,
  keep: Keep | undefined,
): Promise<Unzipped> {
  try {
    const file = await fromBufferPromise(archive, { lazyEntries: true });
    if (file.entryCount > mostEntries)
      return { kind: 'unreadable', why: `is an archive with more than ${mostEntries} entries` };
    return await take(file, pattern, cap, keep);
  } catch (error) {
    if (error instanceof TooLarge) return { kind: 'too_large' };
    if (error instanceof Unusable) return { kind: 'unreadable', why: error.message };
    if (!(error instanceof Error)) throw error;
    return { kind: 'unreadable', why: `is no sound zip archive (${error.message.slice(0, 100)})` };
  }
}

async function take(
  file: ZipFile,
  pattern: EntryPattern,
  cap: number,
  keep: Keep | undefined,
): Promise<Unzipped> {
  const entries: ({ name: string } & Kept)[] = [];
  const names: string[] = [];
  let left = cap;
  let through = mostThrough;
  for await (const entry of file.eachEntry()) {
    const { fileName: name } = entry;
    if (name.endsWith('/')) continue;
    names.push(name);
    if (!pattern.fits(name)) continue;
    // Without `keep`, a byte over what is left is one too many.
    const kept = await read(file, entry, keep ?? { end: 'head', bytes: left }, through);
    if (keep === undefined && kept.cut) throw new TooLarge();
    left -= kept.bytes.length;
    through -= kept.seen;
    if (left < 0) throw new TooLarge();
    entries.push({ name, ...kept });
    if (!pattern.many) break;
  }
  if (entries.length === 0 && !pattern.many) {
    const there = names.length === 0 ? 'nothing' : names.slice(0, 10).join(', ').slice(0, 300);
    throw new Unusable(`is an archive without ${JSON.stringify(pattern.source)}; it holds ${there}`);
  }
  return { kind: 'entries', entries };
}

async function read(file: ZipFile, entry: Entry, keep: Keep, through: number): Promise<Kept> {
  if (!entry.canDecodeFileData()) {
    const how = entry.isEncrypted() ? 'is encrypted' : 'is compressed in an unknown way';
    throw new Unusable(`is an archive whose ${JSON.stringify(entry.fileName.slice(0, 100))} ${how}`);
  }
  const part = keepPart(keep);
  const stream: Readable = await file.openReadStreamPromise(entry);
  let sum = 0;
  let seen = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    seen += chunk.length;
    if (seen > through) throw new TooLarge();
    sum = crc32(chunk, sum);
    // Leaving the loop destroys the stream.
    if (!part.push(chunk)) return part.result();
  }
  if (sum !== entry.crc32)
    throw new Unusable(`is an archive whose ${JSON.stringify(entry.fileName.slice(0, 100))} is damaged`);
  return part.result();
}
