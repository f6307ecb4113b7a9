// One end of a body of any length, decoded as it arrives.

import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Collected, CollectOptions, Collector } from './collect.ts';
import { encodingOf, invalidEncoding, isGzip, unknownEncoding } from './decode.ts';
import { type Keep, keepPart } from './kept-part.ts';

/** Decoded bytes that are read through for one end of them. */
const mostThrough = 1024 * 1024 * 1024;

const decoders: { readonly [encoding: string]: (first: Buffer) => Transform } = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  // Some servers send the bare stream, without the zlib header that "deflate" means.
  deflate: (first) => (((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
};

export function collectPart(keep: Keep, { encoding, files }: CollectOptions): Collector {
  const name = encodingOf(encoding);
  const makeDecoder = name === undefined || !Object.hasOwn(decoders, name) ? undefined : decoders[name];
  const known = name === undefined || makeDecoder !== undefined;
  const part = keepPart(keep);
  let through = 0;
  let state: 'more' | 'enough' | 'too_large' = 'more';
  let broken: string | undefined;
  /** The content encoding, then a gzip file in it. */
  let decoder: Transform | undefined;
  let unfolder: Transform | undefined;
  /** The first decoded bytes, until they tell whether they are a gzip file. */
  let start: Buffer | undefined = files ? Buffer.alloc(0) : undefined;
  let resumeLater: (() => void) | undefined;

  const wake = (): void => {
    const resume = resumeLater;
    resumeLater = undefined;
    resume?.();
  };
  const stop = (): void => {
    decoder?.destroy();
    unfolder?.destroy();
    wake();
  };
  const watched = (stage: Transform, what: string, output: (chunk: Buffer) => void): Transform =>
    stage
      .on('data', output)
      .on('drain', wake)
      .on('error', () => {
        broken ??= what;
        stop();
      });
  const take = (chunk: Buffer): void => {
    if (state !== 'more') return;
    through += chunk.length;
    if (through > mostThrough) state = 'too_large';
    else if (!part.push(chunk)) state = 'enough';
    if (state !== 'more') stop();
  };
  const unfold = (chunk: Buffer): void => {
    if (unfolder === undefined) {
      unfolder = watched(createGunzip(), 'gzip', take);
      unfolder.on('drain', () => decoder?.resume());
    }
    if (!unfolder.write(chunk)) decoder?.pause();
  };
  const decoded = (chunk: Buffer): void => {
    if (start === undefined) {
      if (unfolder === undefined) take(chunk);
      else unfold(chunk);
      return;
    }
    const first = start.length === 0 ? chunk : Buffer.concat([start, chunk]);
    start = first.length < 2 ? first : undefined;
    if (start !== undefined) return;
    if (isGzip(first)) unfold(first);
    else take(first);
  };

  return {
    take(chunk, resume) {
      if (!known || broken !== undefined) return 'enough';
      if (makeDecoder === undefined) decoded(chunk);
      else {
        decoder ??= watched(makeDecoder(chunk), name ?? '', decoded);
        decoder.write(chunk);
      }
      if (state !== 'more') return state;
      if (!decoder?.writableNeedDrain && !unfolder?.writableNeedDrain) return 'more';
      resumeLater = resume;
      return 'pause';
    },
    async finish(): Promise<Collected> {
      if (!known) return { kind: 'unreadable', why: unknownEncoding(name ?? '') };
      if (decoder !== undefined) await ended(decoder);
      if (unfolder !== undefined) await ended(unfolder);
      if (start !== undefined) take(start);
      if (state === 'too_large') return { kind: 'too_large' };
      if (broken !== undefined && state === 'more')
        return { kind: 'unreadable', why: invalidEncoding(broken) };
      return { kind: 'bytes', ...part.result() };
    },
    taken: () => undefined,
    drop: stop,
  };
}

/** Resolves when all that was written has come out, or never will. */
function ended(stage: Transform): Promise<void> {
  return new Promise((resolve) => {
    if (stage.closed) return resolve();
    stage.on('close', resolve);
    if (!stage.destroyed) stage.end();
  });
}
