// Conditional requests: a 304 stands for the reply that is remembered.

import { type EtagCache, type Remembered, requestKey } from './etag-cache.ts';
import { type Exchange, ExchangeLimit, type RawHeaders } from './exchange.ts';
import type { Plan, Prepared, Sent } from './plan.ts';
import { joinHeaders } from './reply-headers.ts';

/**
 * @param passing names, in lower case, of headers that hold for one reply only.
 * @param send one request on the wire.
 */
export async function sendConditionally(
  cache: EtagCache,
  prepared: Prepared,
  plan: Plan,
  passing: ReadonlySet<string>,
  send: (prepared: Prepared) => Promise<Sent>,
): Promise<Sent> {
  const key = requestKey(prepared);
  const known = cache.get(key);
  const sent = await send(known === undefined ? prepared : asking(prepared, known));
  const { outcome } = sent;
  if (outcome.kind === 'failed' || outcome.broken !== undefined) return sent;
  if (known !== undefined && outcome.status === 304) {
    outcome.body.drop();
    return { ...sent, outcome: remembered(known, outcome.headers, plan) };
  }
  const { etag, 'cache-control': caching = '' } = joinHeaders(outcome.headers);
  const body = outcome.body.taken();
  if (outcome.status === 200 && etag !== undefined && body !== undefined && !/\bno-store\b/i.test(caching))
    cache.set(key, { etag, headers: lasting(outcome.headers, passing), body });
  else cache.delete(key);
  return sent;
}

function asking(prepared: Prepared, { etag }: Remembered): Prepared {
  const headers = { ...prepared.wire.headers, 'if-none-match': etag };
  return { ...prepared, wire: { ...prepared.wire, headers } };
}

/** The remembered reply as if it had just come, for a step that may read less of it than the one before. */
function remembered(known: Remembered, now: RawHeaders, plan: Plan): Exchange {
  // RFC 9111, section 3.2: a 304 brings headers up to date, but for those that describe the body.
  const fresh = Object.entries(now).filter(([name]) => !/^(content-|transfer-)/i.test(name));
  const headers = { ...known.headers, ...Object.fromEntries(fresh) };
  const body = plan.collector(200, headers);
  const tooLarge = body.take(known.body, () => {}) === 'too_large';
  const broken = tooLarge ? new ExchangeLimit('too_large') : undefined;
  return { kind: 'reply', status: 200, headers, body, broken };
}

/** What says when to come back, or sets a cookie, was said once. */
function lasting(headers: RawHeaders, passing: ReadonlySet<string>): RawHeaders {
  const once = /^(age|date|set-cookie|retry-after(-ms)?|.*rate-?limit.*)$/i;
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !once.test(name) && !passing.has(name.toLowerCase())),
  );
}
