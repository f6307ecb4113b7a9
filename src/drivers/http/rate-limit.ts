// What replies tell of limits that are not reached yet: how many calls remain, and when the count starts anew.

import { httpDate } from './http-date.ts';
import type { ReplyHeaders } from './reply-headers.ts';

/** Header names in lower case. */
export interface RateLimitNames {
  remaining: string;
  reset: string;
  /** How the reset is written. Undefined: told by how it looks. */
  resetAs: ResetForm | undefined;
}

export const resetForms = ['epoch', 'epochMs', 'seconds', 'ms'] as const;
export type ResetForm = (typeof resetForms)[number];

export interface RateLimit {
  /** Calls that remain; undefined when the reply does not tell. */
  remaining: number | undefined;
  /** Milliseconds from the reply on, negative for a time that has passed. */
  resetMs: number | undefined;
}

/** The names that many APIs share. */
const common: readonly RateLimitNames[] = ['x-ratelimit', 'ratelimit', 'x-rate-limit'].map((prefix) => ({
  remaining: `${prefix}-remaining`,
  reset: `${prefix}-reset`,
  resetAs: undefined,
}));

/**
 * All limits that a reply tells of.
 * @param replied wall time of the reply.
 * @param further names of the upstream's own.
 */
export function rateLimits(
  headers: ReplyHeaders,
  replied: number,
  further: readonly RateLimitNames[] = [],
): RateLimit[] {
  const told = [...further, ...common].flatMap(({ remaining, reset, resetAs }): RateLimit[] => {
    const left = headers[remaining]?.trim();
    const until = headers[reset];
    if (left === undefined && until === undefined) return [];
    if (left !== undefined && !/^\d{1,15}$/.test(left)) return [];
    return [
      {
        remaining: left === undefined ? undefined : Number(left),
        resetMs: until === undefined ? undefined : untilReset(until.trim(), replied, resetAs),
      },
    ];
  });
  return [...told, ...structured(headers.ratelimit)];
}

/** No time since 1973 is that small in seconds, and no wait is that long. */
const smallestEpoch = 1e8;
/** No time until the year 5138 is that large in seconds. */
const smallestEpochMs = 1e11;

function untilReset(text: string, replied: number, form: ResetForm | undefined): number | undefined {
  if (/^\d{1,16}(\.\d{1,9})?$/.test(text)) {
    const value = Number(text);
    switch (form ?? formOf(value)) {
      case 'epoch':
        return value * 1000 - replied;
      case 'epochMs':
        return value - replied;
      case 'seconds':
        return value * 1000;
      case 'ms':
        return value;
    }
  }
  if (form !== undefined) return undefined;
  const date = httpDate(text) ?? isoDate(text);
  return date === undefined ? spelledOut(text) : date - replied;
}

function formOf(value: number): ResetForm {
  if (value >= smallestEpochMs) return 'epochMs';
  return value >= smallestEpoch ? 'epoch' : 'seconds';
}

/** `2031-05-06T07:00:00Z`, with a fraction or an offset. */
function isoDate(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i.test(text)) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

/** `6m0s`, `1h2m`, `250ms`: durations as Go writes them. */
function spelledOut(text: string): number | undefined {
  const groups =
    /^(?:(?<h>\d{1,6})h)?(?:(?<m>\d{1,6})m(?!s))?(?:(?<s>\d{1,6}(?:\.\d{1,9})?)s)?(?:(?<ms>\d{1,9}(?:\.\d{1,9})?)ms)?$/.exec(
      text,
    )?.groups;
  if (text === '' || groups === undefined) return undefined;
  const part = (name: string, ms: number): number => Number(groups[name] ?? 0) * ms;
  return Math.ceil(part('h', 3_600_000) + part('m', 60_000) + part('s', 1000) + part('ms', 1));
}

/**
 * The `RateLimit` field of the IETF draft "RateLimit header fields for HTTP", in its forms of several years:
 * `limit=100, remaining=0, reset=5` and `"default";r=0;t=5`.
 */
function structured(value: string | undefined): RateLimit[] {
  if (value === undefined) return [];
  const text = value.slice(0, 4096);
  const number = (name: string, from: string): number | undefined => {
    const found = new RegExp(`(?:^|[;,\\s])${name}\\s*=\\s*(\\d{1,15})(?=$|[;,\\s])`, 'i').exec(from)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const limit = (remaining: number | undefined, seconds: number | undefined): RateLimit => ({
    remaining,
    resetMs: seconds === undefined ? undefined : seconds * 1000,
  });
  const early = number('remaining', text);
  if (early !== undefined) return [limit(early, number('reset', text))];
  return text.split(',').flatMap((item) => {
    const remaining = number('r', item);
    return remaining === undefined ? [] : [limit(remaining, number('t', item))];
  });
}
