// Bodies that come compressed although nobody asked: unfolded with a limit on what comes out.

import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib';

export type Decoded =
  | { kind: 'bytes'; bytes: Buffer }
  | { kind: 'too_large' }
  /** `why` completes "the reply (200, text/html) …". */
  | { kind: 'unreadable'; why: string };

type Decoder = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const deflate: Decoder = async (bytes, options) => {
  try {
    return await promisify(inflate)(bytes, options);
  } catch (error) {
    // Some servers send the bare stream, without the zlib header that "deflate" means.
    if (codeOf(error) === 'Z_DATA_ERROR') return promisify(inflateRaw)(bytes, options);
    throw error;
  }
};

const decoders: { readonly [encoding: string]: Decoder } = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate,
  br: promisify(brotliDecompress),
};

/** @param encoding the reply's `content-encoding`. */
export async function decode(
  bytes: Buffer,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Decoded> {
  const name = encodingOf(encoding);
  if (name === undefined || bytes.length === 0) return { kind: 'bytes', bytes };
  const decoder = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
  if (decoder === undefined) return { kind: 'unreadable', why: unknownEncoding(name) };
  try {
    return { kind: 'bytes', bytes: await decoder(bytes, { maxOutputLength: maxBytes }) };
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') return { kind: 'too_large' };
    return { kind: 'unreadable', why: invalidEncoding(name) };
  }
}

/** Undefined: the body comes as it is. */
export function encodingOf(value: string | undefined): string | undefined {
  const name = (value ?? '').trim().toLowerCase();
  return name === '' || name === 'identity' ? undefined : name;
}

/** A gzip file. No text and no JSON starts so: the second byte can't follow the first in UTF-8. */
export function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

export function unknownEncoding(name: string): string {
  return `has the unknown content-encoding ${JSON.stringify(name.slice(0, 40))}`;
}

export function invalidEncoding(name: string): string {
  return `is not valid ${name}, although it says so`;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
