// A raw reply turned into what expressions see.

import type { Json, JsonObject } from '../../exact-json.ts';
import type { StepReply } from '../driver.ts';
import type { HttpStep } from './compiled.ts';
import { cookiesOf } from './cookies.ts';
import { decode } from './decode.ts';
import { type Exchange, ExchangeLimit, type RawHeaders } from './exchange.ts';
import type { Fault } from './faults.ts';
import { decodeText, type ReadBody, readBody, unreadable } from './read-body.ts';
import { isLimited, retryAfterMs } from './retry-after.ts';

export interface ReplyContext {
  step: HttpStep;
  /** The request's own URL, without credentials. */
  url: string;
  /** Most bytes of the decoded body. */
  maxBytes: number;
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
  const { step, maxBytes } = context;
  const { status } = raw;
  const headers = joinHeaders(raw.headers);
  const facts = { status, contentType: headers['content-type'], redact: context.redact };
  const wait = retryAfterMs(headers, context.now);
  const whole =
    raw.broken === undefined ? await decode(raw.bytes, headers['content-encoding'], maxBytes) : undefined;
  const broken = raw.broken ?? (whole?.kind === 'too_large' ? new ExchangeLimit('too_large') : undefined);

  const reply = (read: ReadBody, limitBody: Json): StepReply => ({
    kind: 'reply',
    response: {
      status: BigInt(status),
      headers: headers as JsonObject,
      body: read.body,
      cookies: cookiesOf(raw.headers['set-cookie'], context.now),
      url: context.url,
    },
    ok: status >= 200 && status < 300,
    ...(read.unreadable !== undefined && { unreadable: read.unreadable }),
    ...(wait !== undefined && { retryAfterMs: wait }),
    ...(isLimited(status, headers, limitBody) && { limited: true }),
  });

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
  if (step.method === 'HEAD' || noBody.has(status)) return reply({ body: null }, null);
  return reply(readBody(step.read, whole.bytes, facts), status === 403 ? looseJson(whole.bytes) : null);
}

/** Statuses whose replies have no body by definition. */
const noBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** Lower-case names; what is repeated is joined by a comma. */
function joinHeaders(raw: RawHeaders): { [name: string]: string } {
  return Object.fromEntries(
    Object.entries(raw).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), Array.isArray(value) ? value.join(', ') : value]],
    ),
  );
}

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
