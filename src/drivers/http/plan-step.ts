// How much of a step's reply is read, and how it is kept.

import { type Collector, collectWhole } from './collect.ts';
import { collectPart } from './collect-part.ts';
import type { HttpStep } from './compiled.ts';
import type { RawHeaders } from './exchange.ts';
import type { Plan } from './plan.ts';
import { joinHeaders } from './reply-headers.ts';

/** Most bytes that are read of a body that the step doesn't want; the socket is given up beyond. */
const discardedBytes = 64 * 1024;

/** @param bodyCap most bytes of a body, decoded. */
export function planStep(step: HttpStep, bodyCap: number, rest: Pick<Plan, 'party' | 'timeouts' | 'signal'>): Plan {
  const discard = step.read === 'none';
  // Enough of it is kept to tell a rate limit by its message.
  const maxBytes = discard ? Math.min(bodyCap, discardedBytes) : bodyCap;
  const collector = (status: number, headers: RawHeaders): Collector => {
    const options = {
      encoding: joinHeaders(headers)['content-encoding'],
      files: !discard && step.read !== 'base64',
      maxBytes,
      bodyCap,
    };
    // What is no success is short, and read as it is.
    const wanted = status >= 200 && status < 300;
    if (step.keep === undefined || !wanted) return collectWhole(options);
    return collectPart({ end: step.keep.end, bytes: Math.min(step.keep.bytes, bodyCap) }, options);
  };
  return { step, bodyCap, discard, collector, ...rest };
}
