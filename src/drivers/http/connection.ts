// The HTTP driver's connection: performs the steps of one adapter against its upstream.

import type { LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../../clock.ts';
import type { Scope } from '../../config/expression.ts';
import { TaskferryError } from '../../errors.ts';
import type { Json } from '../../exact-json.ts';
import type { ConnectContext, Connection, PerformOptions, StepReply } from '../driver.ts';
import { type Answered, type Line, runChain } from './chain.ts';
import type { HttpStep, HttpUpstream } from './compiled.ts';
import { sendConditionally } from './conditional.ts';
import { createEtagCache } from './etag-cache.ts';
import { exchange } from './exchange.ts';
import { isReset } from './faults.ts';
import { notSent } from './not-sent.ts';
import { readPages } from './pages.ts';
import type { Plan, Prepared, Sent } from './plan.ts';
import { planStep } from './plan-step.ts';
import { type ProxyEnv, proxyAuthorization, proxyFor } from './proxy.ts';
import { type BuiltRequest, buildRequest } from './request.ts';
import { createSockets } from './sockets.ts';

export interface HttpOptions {
  clock?: Clock;
  /** HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read from it. Default: the process's. */
  env?: ProxyEnv;
  /** How host names are resolved. Default: the system's resolver. */
  lookup?: LookupFunction;
}

/** A 429 that names no time stops the adapter this long, the next one in a row twice as long … */
const firstPause = 5_000;
/** … and no longer than this; as long at once for a 403 with words, as GitHub asks of its secondary limits. */
const longestPause = 60_000;
/** The shortest stop after a limited reply, against "Retry-After: 0" in a loop. */
const shortestPause = 1000;

/** Opens no socket yet. All of them are closed by `close()`, which also ends what is under way. */
export function connectHttp(
  upstream: HttpUpstream,
  context: ConnectContext,
  options: HttpOptions = {},
): Connection<HttpStep> {
  const { clock = systemClock, env = process.env, lookup } = options;
  const { budget } = context;
  const sockets = createSockets({ connectTimeout: upstream.timeouts.connect, caFile: upstream.ca, lookup });
  const closing = new AbortController();
  let nextPause = firstPause;
  const pauseAfter = (status: Json | undefined): number => (status === 403n ? longestPause : nextPause);

  const prepare = (step: HttpStep, scope: Scope, headers: PerformOptions['headers']): Prepared => {
    const values: Scope = { ...scope, ...context.variables() };
    const request = buildRequest(upstream, step, values, headers);
    const proxy = proxyFor(request.url, upstream.proxy?.render(values), env);
    return { request, ...onTheWire(request, proxy) };
  };

  const etags = createEtagCache();
  const passing = new Set(upstream.rateLimit.flatMap(({ remaining, reset }) => [remaining, reset]));
  const send: Line['send'] = (prepared, plan, fresh) =>
    plan.step.etag
      ? sendConditionally(etags, prepared, plan, passing, (asked) => sendOnce(asked, plan, fresh))
      : sendOnce(prepared, plan, fresh);

  /** One request on the wire, within the budget. */
  const sendOnce = async (prepared: Prepared, plan: Plan, fresh: boolean): Promise<Sent> => {
    const release = (await budget?.acquire(plan.signal, plan.party)) ?? (() => {});
    let dispatcher: Dispatcher | undefined;
    const mark = sockets.mark();
    try {
      dispatcher = fresh ? sockets.fresh(prepared.route) : sockets.pooled(prepared.route);
      const started = clock.monotonic();
      const outcome = await exchange(dispatcher, prepared.wire, plan, clock, plan.signal);
      context.exchanged?.(outcome.kind, clock.monotonic() - started);
      if (outcome.kind === 'reply') return { outcome, stale: false, sent: true };
      const { connecting, keptAlive } = sockets.facts(outcome.error, mark);
      return {
        outcome,
        stale: outcome.started && keptAlive && isReset(outcome.error),
        sent: outcome.started && !connecting,
      };
    } finally {
      if (fresh) await dispatcher?.destroy();
      release();
    }
  };

  const redact = (text: string): string => context.redact?.(text) ?? text;
  const line: Line = { prepare, send, redact, clock, rateLimit: upstream.rateLimit };

  const attempt = async (plan: Plan, scope: Scope, headers: PerformOptions['headers']): Promise<Answered> => {
    const answered = await runChain(line, plan, scope, headers);
    const { reply, own, usedUpMs } = answered;
    if (reply.kind === 'reply' && own) {
      if (reply.limited) {
        budget?.pauseUntil(
          clock.now() + Math.max(reply.retryAfterMs ?? pauseAfter(reply.response.status), shortestPause),
        );
        nextPause = Math.min(nextPause * 2, longestPause);
      } else {
        nextPause = firstPause;
        if (usedUpMs !== undefined) budget?.pauseUntil(clock.now() + usedUpMs);
      }
    }
    return answered;
  };

  return {
    async perform(step, scope, { signal, maxBytes = upstream.maxBytes, headers, forCaller = false } = {}) {
      const rest = {
        party: forCaller ? ('caller' as const) : ('task' as const),
        timeouts: upstream.timeouts,
        signal: signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]),
      };
      const ask = async (asked: HttpStep, cap: number): Promise<StepReply> => {
        try {
          const plan = planStep(asked, scope, cap, rest);
          const { reply, own } = await attempt(plan, scope, headers);
          const refused = reply.kind === 'reply' && reply.response.status === 401n && own;
          if (!refused || !refreshed(context)) return reply;
          return (await attempt(plan, scope, headers)).reply;
        } catch (error) {
          return notSent(error);
        }
      };
      if (step.pages === undefined) return ask(step, maxBytes);
      return readPages({ ask, redact, clock }, step, step.pages, scope, maxBytes);
    },
    async close() {
      closing.abort();
      await sockets.close();
    },
  };
}

function onTheWire(request: BuiltRequest, proxy: URL | undefined): Pick<Prepared, 'route' | 'wire'> {
  const { url, method, headers, body, guarded } = request;
  const path = url.pathname + url.search;
  // Plain http goes to a plain proxy as a request for the absolute URL: many proxies tunnel to port 443 only.
  // What must be checked for a private address is tunnelled all the same, so that the check is in one place.
  if (proxy?.protocol === 'http:' && url.protocol === 'http:' && !guarded) {
    const authorization = proxyAuthorization(proxy);
    return {
      route: { origin: proxy.origin, guarded: false, tunnel: undefined },
      wire: {
        origin: proxy.origin,
        path: url.origin + path,
        method,
        headers: {
          ...headers,
          host: url.host,
          ...(authorization !== undefined && { 'proxy-authorization': authorization }),
        },
        body,
      },
    };
  }
  return {
    route: { origin: url.origin, guarded, tunnel: proxy },
    wire: { origin: url.origin, path, method, headers, body },
  };
}

function refreshed(context: ConnectContext): boolean {
  try {
    return context.refreshSecrets();
  } catch (error) {
    if (error instanceof TaskferryError) return false;
    throw error;
  }
}
