// Reply headers as expressions see them.

import type { RawHeaders } from './exchange.ts';

/** Header values by lower-case name. */
export interface ReplyHeaders {
  readonly [name: string]: string | undefined;
}

/** Lower-case names; what is repeated is joined by a comma. */
export function joinHeaders(raw: RawHeaders): { [name: string]: string } {
  return Object.fromEntries(
    Object.entries(raw).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), Array.isArray(value) ? value.join(', ') : value]],
    ),
  );
}
