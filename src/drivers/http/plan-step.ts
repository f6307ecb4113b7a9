// How much of a step's reply is read, and how it is kept.

import type { Scope } from '../../config/expression.ts';
import { type Collector, collectWhole } from './collect.ts';
import { collectPart } from './collect-part.ts';
import type { HttpStep } from './compiled.ts';
import { entryPattern } from './entry-pattern.ts';
import type { RawHeaders } from './exchange.ts';
import type { Plan } from './plan.ts';
import { joinHeaders } from './reply-headers.ts';
import { largestArchive } from './unzip.ts';

/** Most bytes that are read of a body that the step doesn't want; the socket is given up beyond. */
const discardedBytes = 64 * 1024;

/**
 * @param bodyCap most bytes of a body, decoded.
 * @throws EvaluationFault, RequestFault
 */
export function planStep(
  step: HttpStep,
  scope: Scope,
  bodyCap: number,
  rest: Pick<Plan, 'party' | 'timeouts' | 'signal'>,
): Plan {
  const discard = step.read === 'none';
  const entries = step.unzip && entryPattern(step.unzip, scope);
  const arrivalCap = entries === undefined ? bodyCap : largestArchive;
  const collector = (status: number, headers: RawHeaders): Collector => {
    const options = {
      encoding: joinHeaders(headers)['content-encoding'],
      files: !discard && step.read !== 'base64' && entries === undefined,
      // Enough of what is not wanted is kept to tell a rate limit by its message.
      maxBytes: discard ? Math.min(bodyCap, discardedBytes) : arrivalCap,
      bodyCap: arrivalCap,
    };
    // What is no success is short, and read as it is.
    const wanted = status >= 200 && status < 300;
    if (step.keep === undefined || entries !== undefined || !wanted) return collectWhole(options);
    return collectPart({ end: step.keep.end, bytes: Math.min(step.keep.bytes, bodyCap) }, options);
  };
  return { step, bodyCap, arrivalCap, entries, discard, collector, ...rest };
}
