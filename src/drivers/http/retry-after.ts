// When the upstream asked to come back, and whether it says "too many requests".

import type { Json } from '../../exact-json.ts';
import type { ReplyHeaders } from './reply-headers.ts';

/** Nobody is made to wait longer, whatever a header says. */
const longest = 60 * 60_000;

/**
 * Milliseconds from now, between 0 and an hour; undefined when the reply names no time. Dates are measured against
 * the reply's own Date header, since clocks differ.
 * @param now wall time, used when the reply has no date.
 */
export function retryAfterMs(headers: ReplyHeaders, now: number): number | undefined {
  const replied = httpDate(headers.date) ?? now;
  const wait = fromRetryAfter(headers['retry-after'], replied) ?? fromRateLimit(headers, replied);
  return wait === undefined ? undefined : Math.min(Math.max(wait, 0), longest);
}

/**
 * True for 429, and for a 403 that is a rate limit: it names a time to come back, says that nothing remains, or its
 * message speaks of a limit. A plain 403 is a matter of permission.
 * @param body the reply's body as JSON, or as text; null when there is none.
 */
export function isLimited(status: number, headers: ReplyHeaders, body: Json): boolean {
  if (status === 429) return true;
  if (status !== 403) return false;
  if (headers['retry-after'] !== undefined || headers['x-ratelimit-remaining']?.trim() === '0') return true;
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

function fromRateLimit(headers: ReplyHeaders, replied: number): number | undefined {
  const reset = headers['x-ratelimit-reset']?.trim() ?? '';
  if (headers['x-ratelimit-remaining']?.trim() !== '0' || !/^\d{1,12}$/.test(reset)) return undefined;
  const seconds = Number(reset);
  // Some APIs give the seconds to wait; no epoch time is that small.
  return seconds < 1e8 ? seconds * 1000 : seconds * 1000 - replied;
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** `Sun, 06 Nov 1994 08:49:37 GMT`, and the two old forms that RFC 9110 asks to accept. */
const dateForms = [
  /^[a-z]{3}, (?<day>\d{2}) (?<month>[a-z]{3}) (?<year>\d{4}) (?<time>\d{2}:\d{2}:\d{2}) gmt$/i,
  /^[a-z]{6,9}, (?<day>\d{2})-(?<month>[a-z]{3})-(?<year>\d{2}) (?<time>\d{2}:\d{2}:\d{2}) gmt$/i,
  /^[a-z]{3} (?<month>[a-z]{3}) (?<day>[\d ]\d) (?<time>\d{2}:\d{2}:\d{2}) (?<year>\d{4})$/i,
];

/** Milliseconds since the epoch; undefined when `value` is no HTTP date. */
export function httpDate(value: string | undefined): number | undefined {
  const groups = dateForms.map((form) => form.exec(value?.trim() ?? '')?.groups).find((found) => found);
  if (groups === undefined) return undefined;
  const month = months.indexOf((groups.month ?? '').toLowerCase());
  const [hours = 0, minutes = 0, seconds = 0] = (groups.time ?? '').split(':').map(Number);
  const day = Number(groups.day);
  if (month < 0 || day < 1 || day > 31 || hours > 23 || minutes > 59 || seconds > 60) return undefined;
  return Date.UTC(fullYear(groups.year ?? ''), month, day, hours, minutes, seconds);
}

/** Two digits mean the year at most 50 years ahead. */
function fullYear(digits: string): number {
  if (digits.length > 2) return Number(digits);
  const now = new Date().getUTCFullYear();
  const year = now - (now % 100) + Number(digits);
  return year > now + 50 ? year - 100 : year;
}
