// A step's request and the redirects it follows: the last reply counts.

import type { Clock } from '../../clock.ts';
import type { Scope } from '../../config/expression.ts';
import type { Json } from '../../exact-json.ts';
import type { PerformOptions, StepReply } from '../driver.ts';
import type { HttpStep } from './compiled.ts';
import { describeFault } from './faults.ts';
import { notSent } from './not-sent.ts';
import { hostAndPort } from './origins.ts';
import type { Plan, Prepared, Sent } from './plan.ts';
import type { RateLimitNames } from './rate-limit.ts';
import { redirected } from './redirects.ts';
import { readReply } from './reply.ts';
import { joinHeaders } from './reply-headers.ts';
import { RequestFault } from './request-fault.ts';
import { usedUpMs } from './retry-after.ts';
import { isSafe } from './safe-method.ts';

/** What the chain needs of the connection it runs on. */
export interface Line {
  /** @throws what {@link notSent} turns into a reply. */
  prepare(step: HttpStep, scope: Scope, headers: PerformOptions['headers']): Prepared;
  send(prepared: Prepared, plan: Plan, fresh: boolean): Promise<Sent>;
  /** The reply says that the login is no longer accepted; then a redirect leads to no use. */
  endsLogin(reply: StepReply, env: Json | undefined): boolean;
  redact(text: string): string;
  clock: Clock;
  /** Where else the upstream tells its limits. */
  rateLimit: readonly RateLimitNames[];
}

export interface Answered {
  reply: StepReply;
  /** The reply came from the upstream's own origin: what it says of limits holds for the upstream. */
  own: boolean;
  /** The request carried credentials and may be sent once more with others, should these be refused. */
  renewable: boolean;
  /** Milliseconds for which nothing more should be asked of the upstream: no call remains. */
  usedUpMs?: number | undefined;
}

interface Link extends Answered {
  /** Where the reply sends the step on to. */
  next?: HttpStep;
}

/**
 * @param headers are sent with the first request only.
 * @throws what {@link notSent} turns into a reply, as long as nothing was sent.
 */
export async function runChain(
  line: Line,
  plan: Plan,
  scope: Scope,
  headers: PerformOptions['headers'],
): Promise<Answered> {
  const { step } = plan;
  let prepared = line.prepare(step, scope, headers);
  let link = await ask(line, plan, step, prepared, scope);
  if (link.next === undefined) return link;
  const asked = new Set([keyOf(prepared)]);
  while (link.next !== undefined) {
    const { next, own, renewable } = link;
    try {
      prepared = line.prepare(next, scope, undefined);
      if (asked.has(keyOf(prepared))) throw new RequestFault('the redirects go round in a circle');
      if (asked.size > step.redirects) {
        const most = step.redirects === 1 ? 'the one' : `the ${step.redirects}`;
        throw new RequestFault(`there are more redirects than ${most} that the step follows`);
      }
      asked.add(keyOf(prepared));
      link = await ask(line, plan, next, prepared, scope);
    } catch (error) {
      link = { own, renewable, reply: notSent(error) };
    }
  }
  // What changed something before it was redirected is never sent again.
  const renewable = link.renewable && isSafe(step);
  return { ...link, renewable, reply: afterRedirect(step, link.reply, prepared) };
}

function keyOf({ request }: Prepared): string {
  return `${request.method} ${request.url.href}`;
}

async function ask(line: Line, plan: Plan, step: HttpStep, prepared: Prepared, scope: Scope): Promise<Link> {
  const { url, shownUrl, own, trusted: renewable } = prepared.request;
  let sent = await line.send(prepared, plan, false);
  // The upstream closed an idle socket at the moment it was used again. Asking anew does no harm for these.
  if (sent.stale && isSafe(prepared.request)) sent = await line.send(prepared, plan, true);
  const { outcome } = sent;
  const faultContext = {
    where: hostAndPort(url),
    timeouts: plan.timeouts,
    maxBytes: plan.arrivalCap,
    sent: sent.sent,
  };
  if (outcome.kind === 'failed') {
    return {
      own,
      renewable,
      reply: { kind: 'failed', ...describeFault(outcome.error, faultContext), sent: sent.sent },
    };
  }
  const reply = await readReply(outcome, {
    step,
    url: shownUrl,
    entries: plan.entries,
    bodyCap: plan.bodyCap,
    rateLimit: line.rateLimit,
    now: line.clock.now(),
    describe: (error) => describeFault(error, faultContext),
    redact: line.redact,
  });
  const usedUp = usedUpMs(joinHeaders(outcome.headers), line.clock.now(), line.rateLimit);
  if (line.endsLogin(reply, scope.env)) return { own, renewable, reply, usedUpMs: usedUp };
  try {
    const next = redirected({ ...outcome, step, url: shownUrl }, line.redact);
    return { own, renewable, reply, usedUpMs: usedUp, ...(next && { next }) };
  } catch (error) {
    return { own, renewable, reply: { ...notSent(error), sent: true } };
  }
}

/**
 * After the first request something was sent, whatever befell the rest. What a request that changes something did is
 * not told by a page that could not be had afterwards: its outcome is unknown.
 */
function afterRedirect(step: HttpStep, reply: StepReply, { request }: Prepared): StepReply {
  if (reply.kind === 'failed') return { ...reply, sent: true };
  if (isSafe(step) || reply.ok) return reply;
  const status = String(reply.response.status);
  return {
    kind: 'failed',
    code: 'reset',
    sent: true,
    reason: `the redirect led to ${hostAndPort(request.url)}, which answered with HTTP ${status}`,
  };
}
