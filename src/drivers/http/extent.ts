// How much of the upstream's body a reply holds, and its kept part cut at borders of the text.

import { type CutRule, cutEnd, cutStart } from './borders.ts';
import type { Collected } from './collect.ts';
import type { HttpStep } from './compiled.ts';
import { contentRange, type Part } from './content-range.ts';
import type { Kept } from './kept-part.ts';
import type { ReplyHeaders } from './reply-headers.ts';

export interface Extent {
  /** Something of the body is missing. */
  truncated: boolean;
  /** Bytes of the whole body; undefined when nobody knows. */
  bytes: number | undefined;
}

type Arrived = Extract<Collected, { kind: 'bytes' }>;

/** @param body undefined for a reply whose body was not read. */
export function extentOf(status: number, headers: ReplyHeaders, body: Arrived | undefined): Extent {
  if (body === undefined) return { truncated: false, bytes: announced(headers) };
  if (status === 206) {
    const part = partOf(status, headers);
    return { truncated: part === undefined || body.cut || misses(part), bytes: part?.total };
  }
  if (!body.cut) return { truncated: false, bytes: body.seen };
  // A tail is only known once all has come; of a head nobody saw the end.
  return { truncated: true, bytes: body.complete ? body.seen : announced(headers) };
}

/** The kept part of a text, without the pieces of lines at its cut ends. */
export function atBorders(step: HttpStep, status: number, headers: ReplyHeaders, body: Arrived): Buffer {
  if (status < 200 || status > 299) return body.bytes;
  const part = partOf(status, headers);
  return keptText(step, body, {
    start: part !== undefined && part.from > 0,
    end: part !== undefined && (part.total === undefined || part.to < part.total),
  });
}

/** @param beyond where there is more of the text than came. */
export function keptText(
  { keep, read }: HttpStep,
  body: Kept,
  beyond: { start: boolean; end: boolean } = { start: false, end: false },
): Buffer {
  if (keep === undefined) return body.bytes;
  const rule: CutRule = { wholeLines: read !== 'text', quoted: read === 'csv' };
  let { bytes } = body;
  if (body.cut && keep.end === 'tail' ? !body.lineStart : beyond.start) bytes = cutStart(bytes, rule);
  if ((body.cut && keep.end === 'head') || beyond.end) bytes = cutEnd(bytes, rule);
  return bytes;
}

function partOf(status: number, headers: ReplyHeaders): Part | undefined {
  return status === 206 ? contentRange(headers['content-range']) : undefined;
}

function misses({ from, to, total }: Part): boolean {
  return from > 0 || total === undefined || to < total;
}

/** `Content-Length` tells the size only of a body that is sent as it is. */
function announced(headers: ReplyHeaders): number | undefined {
  const length = headers['content-length'];
  const plain = (headers['content-encoding'] ?? 'identity') === 'identity';
  return plain && length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}
