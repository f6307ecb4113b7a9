// Where the bytes of a reply's body go as they arrive.

import { type Decoded, decode, isGzip } from './decode.ts';
import type { Kept } from './kept-part.ts';

export type Collected =
  | Exclude<Decoded, { kind: 'bytes' }>
  /** The body, or its kept part. */
  | ({ kind: 'bytes' } & Kept);

export interface Collector {
  /**
   * `pause`: no more before `resume` is called. `enough`: what follows is not wanted.
   * @param resume is called at most once, later.
   */
  take(chunk: Buffer, resume: () => void): 'more' | 'pause' | 'enough' | 'too_large';
  /** What was collected; called once, when the body has arrived. */
  finish(): Promise<Collected>;
  /** The whole body as it came; undefined when not all of it is held. */
  taken(): Buffer | undefined;
  /** Frees what is held; nothing was or will be wanted. */
  drop(): void;
}

export interface CollectOptions {
  /** Of the reply: `content-encoding`. */
  encoding: string | undefined;
  /** A body that is a gzip file is unfolded as well. */
  files: boolean;
  /** Most bytes as they arrive. */
  maxBytes: number;
  /** Most bytes decoded. */
  bodyCap: number;
}

/** The whole body. */
export function collectWhole({ encoding, files, maxBytes, bodyCap }: CollectOptions): Collector {
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    take(chunk) {
      size += chunk.length;
      if (size > maxBytes) return 'too_large';
      chunks.push(chunk);
      return 'more';
    },
    async finish() {
      const bytes = Buffer.concat(chunks);
      let decoded = await decode(bytes, encoding, bodyCap);
      if (files && decoded.kind === 'bytes' && isGzip(decoded.bytes))
        decoded = await decode(decoded.bytes, 'gzip', bodyCap);
      return decoded.kind === 'bytes'
        ? { ...decoded, seen: decoded.bytes.length, complete: true, cut: false, lineStart: true }
        : decoded;
    },
    taken: () => (size > maxBytes ? undefined : Buffer.concat(chunks)),
    drop() {
      chunks.length = 0;
    },
  };
}
