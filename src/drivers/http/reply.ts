// A raw reply turned into what expressions see.

import type { Json, JsonObject } from '../../exact-json.ts';
import type { StepReply } from '../driver.ts';
import type { HttpStep } from './compiled.ts';
import { cookiesOf } from './cookies.ts';
import type { EntryPattern } from './entry-pattern.ts';
import { type Exchange, ExchangeLimit } from './exchange.ts';
import { atBorders, type Extent, extentOf } from './extent.ts';
import type { Fault } from './faults.ts';
import type { RateLimitNames } from './rate-limit.ts';
import { readArchive } from './read-archive.ts';
import { decodeText, type ReadBody, readBody, unreadable } from './read-body.ts';
import { joinHeaders } from './reply-headers.ts';
import { isLimited, retryAfterMs } from './retry-after.ts';

export interface ReplyContext {
  step: HttpStep;
  /** The request's own URL, without credentials. */
  url: string;
  /** Entries that are taken out of the body, an archive. */
  entries: EntryPattern | undefined;
  /** Most bytes of them. */
  bodyCap: number;
  /** Where else the upstream tells its limits. */
  rateLimit: readonly RateLimitNames[];
  /** Wall time. */
  now: number;
  describe(error: Error): Fault;
  redact(text: string): string;
}

/**
 * A body that did not arrive whole makes the exchange a failure, except on an error status: there the status is the
 * news, and the reply is given with `unreadable`.
 */
export async function readReply(
  raw: Extract<Exchange, { kind: 'reply' }>,
  context: ReplyContext,
): Promise<StepReply> {
  const { step } = context;
  const { status } = raw;
  const headers = joinHeaders(raw.headers);
  const facts = { status, contentType: headers['content-type'], redact: context.redact };
  const whole = raw.broken === undefined ? await raw.body.finish() : undefined;
  const broken = raw.broken ?? (whole?.kind === 'too_large' ? new ExchangeLimit('too_large') : undefined);

  const empty = step.method === 'HEAD' || noBody.has(status);
  const all = extentOf(status, headers, empty || whole?.kind !== 'bytes' ? undefined : whole);

  const reply = (read: ReadBody, limitBody: Json, { truncated, bytes }: Extent = all): StepReply => {
    const limited = isLimited(status, headers, limitBody, context.rateLimit);
    const wait = retryAfterMs(headers, context.now, context.rateLimit, limited);
    return {
      kind: 'reply',
      response: {
        status: BigInt(status),
        headers: headers as JsonObject,
        body: read.body,
        cookies: cookiesOf(raw.headers['set-cookie'], context.now),
        url: context.url,
        truncated,
        ...(bytes !== undefined && { bytes: BigInt(bytes) }),
      },
      ok: status >= 200 && status < 300,
      ...(read.unreadable !== undefined && { unreadable: read.unreadable }),
      ...(wait !== undefined && { retryAfterMs: wait }),
      ...(limited && { limited }),
    };
  };

  const fault = broken && context.describe(broken);
  if (fault?.code === 'aborted') return { kind: 'failed', ...fault, sent: true };
  if (step.read === 'none') {
    return reply({ body: null }, whole?.kind === 'bytes' ? looseJson(whole.bytes) : null);
  }
  if (fault !== undefined) {
    if (status < 400) return { kind: 'failed', ...fault, sent: true };
    return reply(unreadable(`could not be read to its end (${fault.reason})`, facts, ''), null);
  }
  if (whole?.kind !== 'bytes') {
    return reply(unreadable(whole?.kind === 'unreadable' ? whole.why : 'has no body', facts, ''), null);
  }
  if (empty) return reply({ body: null }, null);
  if (context.entries !== undefined && status >= 200 && status < 300) {
    const { entries, bodyCap } = context;
    const archive = await readArchive(step, whole.bytes, entries, bodyCap, facts);
    if (archive.kind === 'too_large') {
      const reason = `what is taken out of the archive is more than ${bodyCap} bytes`;
      return { kind: 'failed', code: 'too_large', sent: true, reason };
    }
    return reply(archive.read, null, archive);
  }
  const success = status >= 200 && status < 300;
  // An error is not of the kind that was asked for: it is JSON, or a few words.
  if (!success && (step.read === 'csv' || step.read === 'base64' || step.read === 'jsonl')) {
    const said = looseJson(whole.bytes);
    if (said !== null) return reply({ body: said }, said);
  }
  const read = readBody(step.read, atBorders(step, status, headers, whole), facts);
  const loose = status === 403 || status === 429 ? looseJson(whole.bytes) : null;
  // Whoever limits us may be something in front of the API, which speaks plain text.
  const plain = read.unreadable !== undefined && typeof loose === 'string';
  return plain && isLimited(status, headers, loose, context.rateLimit)
    ? reply({ body: loose }, loose)
    : reply(read, loose);
}

/** Statuses whose replies have no body by definition. */
const noBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** JSON if it is, else short plain text; pages of markup say nothing reliable about limits. */
function looseJson(bytes: Buffer): Json {
  const text = decodeText(bytes);
  const { body, unreadable: why } = readBody('json', bytes, {
    status: 403,
    contentType: undefined,
    redact: (quoted) => quoted,
  });
  return why === undefined || text.trimStart().startsWith('<') ? body : text;
}
