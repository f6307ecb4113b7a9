// The HTTP driver's connection: performs the steps of one adapter against its upstream.

import type { LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../../clock.ts';
import { EvaluationFault, type Expression, type Scope } from '../../config/expression.ts';
import { readsRoot } from '../../config/expression-names.ts';
import { TaskferryError } from '../../errors.ts';
import type { Json, JsonObject } from '../../exact-json.ts';
import type { ConnectContext, Connection, PerformOptions, StepReply } from '../driver.ts';
import { bodyReads } from './body.ts';
import { type Answered, type Line, runChain } from './chain.ts';
import type { HttpStep, HttpUpstream } from './compiled.ts';
import { sendConditionally } from './conditional.ts';
import { additionReads, additionsFor, headerReads, withoutLogin } from './credentials.ts';
import { createEtagCache } from './etag-cache.ts';
import { exchange } from './exchange.ts';
import { isReset, refusesCertificate } from './faults.ts';
import { createJwts } from './jwt.ts';
import { createLogin, type Session } from './login.ts';
import { notSent } from './not-sent.ts';
import { onTheWire, signedWire } from './on-the-wire.ts';
import { readPages } from './pages.ts';
import type { Plan, Prepared, Sent } from './plan.ts';
import { planStep } from './plan-step.ts';
import { type ProxyEnv, proxyFor } from './proxy.ts';
import { buildRequest } from './request.ts';
import { createSockets } from './sockets.ts';
import { createTlsMaterial } from './tls-material.ts';

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
  const sockets = createSockets({
    connectTimeout: upstream.timeouts.connect,
    material: createTlsMaterial(upstream.tls, () => ({ ...context.variables() })),
    lookup,
  });
  const closing = new AbortController();
  let nextPause = firstPause;
  const pauseAfter = (status: Json | undefined): number => (status === 403n ? longestPause : nextPause);

  const prepare = (
    from: HttpUpstream,
    step: HttpStep,
    scope: Scope,
    headers: PerformOptions['headers'],
  ): Prepared => {
    const values: Scope = { ...scope, ...context.variables() };
    const request = buildRequest(from, step, values, headers);
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
      const wire = await signedWire(prepared, clock);
      const started = clock.monotonic();
      const outcome = await exchange(dispatcher, wire, plan, clock, plan.signal);
      context.exchanged?.(outcome.kind, clock.monotonic() - started);
      if (outcome.kind === 'reply') return { outcome, stale: false, sent: true };
      const { connecting, keptAlive, refusal } = sockets.facts(outcome.error, mark, prepared.route.origin);
      const error = refusal ?? outcome.error;
      return {
        outcome: { ...outcome, error },
        stale: outcome.started && keptAlive && isReset(error),
        sent: outcome.started && !connecting && !refusesCertificate(error),
      };
    } finally {
      if (fresh) await dispatcher?.destroy();
      release();
    }
  };

  const redact = (text: string): string => context.redact?.(text) ?? text;
  const isOverNow = (reply: StepReply, env: Json | undefined): boolean =>
    upstream.login !== undefined && isOver(upstream.login.renewOn, reply, env);
  /** @param from the upstream itself, or as its login sees it. */
  const lineFor = (from: HttpUpstream): Line => ({
    prepare: (step, scope, headers) => prepare(from, step, scope, headers),
    send,
    endsLogin: (reply, env) => from.login !== undefined && isOverNow(reply, env),
    redact,
    clock,
    rateLimit: upstream.rateLimit,
  });

  const attempt = async (
    line: Line,
    plan: Plan,
    scope: Scope,
    headers: PerformOptions['headers'],
  ): Promise<Answered> => {
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

  const jwts = createJwts(upstream.jwt, clock);
  /** `jwt` with the tokens that the request reads. */
  const signed = async (from: HttpUpstream, step: HttpStep): Promise<Scope> => {
    const reads = sentReads(from, step);
    return readsRoot(reads, 'jwt') ? { jwt: await jwts.tokens(reads, { ...context.variables() }) } : {};
  };
  const usesLogin = (step: HttpStep): boolean => readsRoot(sentReads(upstream, step), 'login');

  const beforeLogin = withoutLogin(upstream);
  const loginLine = lineFor(beforeLogin);
  const login =
    upstream.login &&
    createLogin(upstream.login, {
      clock,
      variables: () => context.variables(),
      redact,
      async send(step, scope) {
        try {
          const plan = planStep(step, scope, upstream.maxBytes, {
            // Calls may wait for it as well as tasks.
            party: 'caller',
            timeouts: upstream.timeouts,
            signal: closing.signal,
          });
          const make = async (): Promise<Answered> =>
            attempt(loginLine, plan, { ...scope, ...(await signed(beforeLogin, step)) }, undefined);
          const { reply, renewable } = await make();
          if (!renewable || !isUnauthorised(reply) || !refreshed(context)) return reply;
          return (await make()).reply;
        } catch (error) {
          return notSent(error);
        }
      },
    });

  const line = lineFor(upstream);
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
          const session = usesLogin(asked) ? await login?.session(plan.signal) : undefined;
          const make = async (current: Session | undefined): Promise<Answered> => {
            const credentials = {
              ...(current && { login: current.values }),
              ...(await signed(upstream, asked)),
            };
            return attempt(line, plan, { ...scope, ...credentials }, headers);
          };
          const { reply, renewable } = await make(session);
          if (reply.kind === 'failed' || !renewable) return reply;
          const changed = isUnauthorised(reply) && refreshed(context);
          const over = session !== undefined && isOverNow(reply, scope.env);
          const renewed = over ? await login?.renew(session, plan.signal) : session;
          if (!changed && (!over || renewed === undefined)) return reply;
          return (await make(renewed ?? session)).reply;
        } catch (error) {
          return notSent(error);
        }
      };
      if (step.pages === undefined) return ask(step, maxBytes);
      return readPages({ ask, redact, clock }, step, step.pages, scope, maxBytes);
    },
    secrets: () => [...(login?.secrets() ?? []), ...jwts.secrets()],
    async close() {
      closing.abort();
      await sockets.close();
    },
  };
}

/** Names that the request reads in what it sends. */
function sentReads(upstream: HttpUpstream, step: HttpStep): ReadonlySet<string> {
  const sets = [
    ...additionReads(additionsFor(upstream, step)),
    ...step.headers.map(headerReads),
    ...(step.query ? [step.query.reads] : []),
    ...(step.body ? bodyReads(step.body) : []),
  ];
  return new Set(sets.flatMap((reads) => [...reads]));
}

function isUnauthorised(reply: StepReply): boolean {
  return reply.kind === 'reply' && reply.response.status === 401n;
}

/** The reply says that the login is no longer accepted. One that is a limit says nothing of the kind. */
function isOver(renewOn: Expression | undefined, reply: StepReply, env: Json | undefined): boolean {
  if (reply.kind === 'failed' || reply.limited === true) return false;
  if (renewOn === undefined) return isUnauthorised(reply);
  try {
    return renewOn.evaluate({ response: reply.response as JsonObject, env }) === true;
  } catch (error) {
    if (error instanceof EvaluationFault) return false;
    throw error;
  }
}

function refreshed(context: ConnectContext): boolean {
  try {
    return context.refreshSecrets();
  } catch (error) {
    if (error instanceof TaskferryError) return false;
    throw error;
  }
}
