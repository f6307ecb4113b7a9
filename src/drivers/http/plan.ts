// What one step's exchange goes by, from the connection down to the wire.

import type { Party } from '../budget.ts';
import type { HttpStep } from './compiled.ts';
import type { EntryPattern } from './entry-pattern.ts';
import type { Exchange, ExchangeLimits, WireRequest } from './exchange.ts';
import type { BuiltRequest } from './request.ts';
import type { Route } from './sockets.ts';

export interface Plan extends ExchangeLimits {
  step: HttpStep;
  /** Whose share of the budget it takes. */
  party: Party;
  /** Most bytes of a body, decoded. */
  bodyCap: number;
  /** Most bytes of a body that is read whole, as it arrives. */
  arrivalCap: number;
  /** Entries that are taken out of the body, an archive. */
  entries: EntryPattern | undefined;
  signal: AbortSignal;
}

/** A request that is ready to go. */
export interface Prepared {
  request: BuiltRequest;
  route: Route;
  wire: WireRequest;
}

export interface Sent {
  outcome: Exchange;
  /** A kept-alive socket was closed under the request before an answer came. */
  stale: boolean;
  sent: boolean;
}
