// Redirects that a step follows: the request that a reply sends it to, and when it goes too far.

import type { Scope } from '../../config/expression.ts';
import { readsSecret } from '../../config/expression-names.ts';
import type { Json } from '../../exact-json.ts';
import type { HeaderSource, HttpStep } from './compiled.ts';
import { headerReads } from './credentials.ts';
import type { RawHeaders } from './exchange.ts';
import { fixedTarget } from './fixed-target.ts';
import { nextUrl } from './next-url.ts';
import { RequestFault } from './request-fault.ts';
import { isSafe } from './safe-method.ts';

/** Most redirects that a step may follow in a row. */
export const mostRedirects = 5;

/** RFC 9110, section 15.4; 300 and 304 point nowhere that could be followed. */
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export interface Hop {
  step: HttpStep;
  /** The request that was just answered, without credentials. */
  url: string;
  status: number;
  headers: RawHeaders;
}

/**
 * The step that asks for what a reply points at. Whether its host is admitted and what is sent there is checked when
 * its request is built, as for any URL out of a reply.
 * @param redact replaces known secrets.
 * @returns undefined when the reply is to be read as it is.
 * @throws RequestFault when the redirect can't be followed.
 */
export function redirected(
  { step, url, status, headers }: Hop,
  redact: (text: string) => string,
): HttpStep | undefined {
  const safe = isSafe(step);
  if (step.redirects === 0 || !redirects.has(status) || !(safe || status === 303)) return undefined;
  const location = Object.entries(headers).find(([name]) => name.toLowerCase() === 'location')?.[1];
  if (location === undefined || location === '') return undefined;
  if (typeof location !== 'string') throw new RequestFault('the redirect names more than one URL');
  const to = nextUrl(location, url, 'the redirect', redact);
  const elsewhere = to.origin !== new URL(url).origin;
  return {
    ...step,
    method: step.method === 'HEAD' ? 'HEAD' : 'GET',
    target: fixedTarget(to.href, 'the redirect'),
    query: undefined,
    body: undefined,
    headers: step.headers.flatMap((source) => {
      // What reads a secret is left to the request, which knows where secrets may go.
      const told = elsewhere && !readsSecret(headerReads(source));
      return without(source, (name) => (told && personal.test(name)) || (!safe && /^content-/i.test(name)));
    }),
  };
}

/** They say who asks, whether or not a secret stands in them. */
const personal = /^(authorization|cookie)$/i;

function without(source: HeaderSource, unwanted: (name: string) => boolean): HeaderSource[] {
  if ('name' in source) return unwanted(source.name) ? [] : [source];
  const { map } = source;
  const render = (scope: Scope): Json | undefined => {
    const headers = map.render(scope);
    if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return headers;
    return Object.fromEntries(Object.entries(headers).filter(([name]) => !unwanted(name)));
  };
  return [{ map: { reads: map.reads, render } }];
}
