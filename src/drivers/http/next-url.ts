// A URL that a reply sends us on to: resolved against where the reply came from, and never a step down.

import { RequestFault } from './request-fault.ts';

/**
 * Which hosts are admitted is checked where the request is built.
 * @param from the URL that was asked, without credentials.
 * @param what names it in messages: `the redirect`.
 * @param redact replaces known secrets.
 * @throws RequestFault
 */
export function nextUrl(
  reference: string,
  from: string,
  what: string,
  redact: (text: string) => string,
): URL {
  const to = URL.parse(reference, from);
  if (to === null || !/^https?:$/.test(to.protocol))
    throw new RequestFault(`${what} leads to no http or https URL`);
  if (from.startsWith('https:') && to.protocol === 'http:')
    throw new RequestFault(`${what} leads from https to plain http`);
  to.hash = '';
  // What an upstream repeats of our request must not reach another host.
  if (to.origin !== new URL(from).origin && redact(decoded(to.href)) !== decoded(to.href))
    throw new RequestFault(`${what} would carry a secret to another host`);
  return to;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
