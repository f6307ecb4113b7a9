// When the upstream asked to come back, and whether it says "too many requests".

import type { Json } from '../../exact-json.ts';
import { httpDate } from './http-date.ts';
import { type RateLimitNames, rateLimits } from './rate-limit.ts';
import type { ReplyHeaders } from './reply-headers.ts';

/** Nobody is made to wait longer, whatever a header says. */
const longest = 60 * 60_000;

/**
 * Milliseconds from now, between 0 and an hour; undefined when the reply names no time. `retry-after-ms` comes before
 * `retry-after`, and both before the reset of a used up limit. Dates are measured against the reply's own Date header,
 * since clocks differ.
 * @param now wall time, used when the reply has no date.
 * @param limits where else the upstream tells its limits.
 * @param limited the reply says "too many requests": then a reset counts even where nothing tells what remains.
 */
export function retryAfterMs(
  headers: ReplyHeaders,
  now: number,
  limits: readonly RateLimitNames[] = [],
  limited = false,
): number | undefined {
  const replied = httpDate(headers.date) ?? now;
  return within(
    milliseconds(headers['retry-after-ms']) ??
      fromRetryAfter(headers['retry-after'], replied) ??
      resetMs(headers, replied, limits, limited),
  );
}

/**
 * Milliseconds for which nothing more should be asked, as the reply says that no call remains; undefined when some do
 * or when nobody knows until when.
 */
export function usedUpMs(
  headers: ReplyHeaders,
  now: number,
  limits: readonly RateLimitNames[] = [],
): number | undefined {
  return within(resetMs(headers, httpDate(headers.date) ?? now, limits, false));
}

function within(wait: number | undefined): number | undefined {
  return wait === undefined ? undefined : Math.min(Math.max(wait, 0), longest);
}

/** The latest reset of all limits that are used up. */
function resetMs(
  headers: ReplyHeaders,
  replied: number,
  limits: readonly RateLimitNames[],
  unknownToo: boolean,
): number | undefined {
  const waits = rateLimits(headers, replied, limits)
    .filter(({ remaining }) => remaining === 0 || (unknownToo && remaining === undefined))
    .flatMap(({ resetMs: wait }) => (wait === undefined ? [] : [wait]));
  return waits.length === 0 ? undefined : Math.max(...waits);
}

/**
 * True for 429, and for a 403 that is a rate limit: it names a time to come back, says that nothing remains, or its
 * message speaks of a limit. A plain 403 is a matter of permission.
 * @param body the reply's body as JSON, or as text; null when there is none.
 */
export function isLimited(
  status: number,
  headers: ReplyHeaders,
  body: Json,
  limits: readonly RateLimitNames[] = [],
): boolean {
  if (status === 429) return true;
  if (status !== 403) return false;
  if (headers['retry-after'] !== undefined || headers['retry-after-ms'] !== undefined) return true;
  if (rateLimits(headers, 0, limits).some(({ remaining }) => remaining === 0)) return true;
  return messages(body).some((text) => limitWords.test(text));
}

const limitWords = /rate.?limit|too many requests|\babuse\b|\bsecondary\b.*\blimit/is;

/** The places where APIs put their words. */
function messages(body: Json): string[] {
  if (typeof body === 'string') return [body.slice(0, 2000)];
  if (body === null || typeof body !== 'object' || Array.isArray(body)) return [];
  const error = body.error;
  const inner = error !== null && typeof error === 'object' && !Array.isArray(error) ? error : undefined;
  return [body.message, error, inner?.message, body.detail, body.error_description].filter(
    (value) => typeof value === 'string',
  );
}

function fromRetryAfter(value: string | undefined, replied: number): number | undefined {
  const text = value?.trim() ?? '';
  // Digits first: date parsers take "120" for a year.
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1000);
  const date = httpDate(text);
  return date === undefined ? undefined : date - replied;
}

function milliseconds(value: string | undefined): number | undefined {
  const text = value?.trim() ?? '';
  return /^\d+(\.\d+)?$/.test(text) ? Math.ceil(Number(text)) : undefined;
}
