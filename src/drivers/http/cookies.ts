// The cookies that a reply sets, by name.

import type { JsonObject } from '../../exact-json.ts';
import { httpDate } from './http-date.ts';

/**
 * The last of a name counts; what the reply deletes (`Max-Age=0`, an `Expires` that is past) is left out. Path and
 * domain are not looked at: the adapter says which request carries which cookie. RFC 6265, section 5.2.
 * @param now wall time, milliseconds.
 */
export function cookiesOf(raw: string | string[] | undefined, now: number): JsonObject {
  const lines = raw === undefined ? [] : Array.isArray(raw) ? raw : [raw];
  const cookies = new Map<string, string>();
  for (const line of lines) {
    const [pair = '', ...attributes] = line.split(';');
    const at = pair.indexOf('=');
    const name = pair.slice(0, Math.max(0, at)).trim();
    if (name === '') continue;
    if (isDeletion(attributes, now)) cookies.delete(name);
    else cookies.set(name, pair.slice(at + 1).trim());
  }
  return Object.fromEntries(cookies);
}

/** `Max-Age` counts before `Expires`. */
function isDeletion(attributes: readonly string[], now: number): boolean {
  const named = new Map(
    attributes.map((attribute): [string, string] => {
      const at = attribute.indexOf('=');
      return at < 0
        ? [attribute.trim().toLowerCase(), '']
        : [attribute.slice(0, at).trim().toLowerCase(), attribute.slice(at + 1).trim()];
    }),
  );
  const age = named.get('max-age');
  if (age !== undefined && /^-?\d+$/.test(age)) return Number(age) <= 0;
  const expires = httpDate(named.get('expires')?.replaceAll('-', ' '));
  return expires !== undefined && expires <= now;
}
