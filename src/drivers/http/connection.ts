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
import { type ChainAnswer, type Line, runChain } from './chain.ts';
import type { HttpStep, HttpUpstream } from './compiled.ts';
import { sendConditionally } from './conditional.ts';
import { additionReads, additionsFor, headerReads, withoutLogin } from './credentials.ts';
import { createEtagCache } from './etag-cache.ts';
import { exchange, type WireRequest } from './exchange.ts';
import { isReset, refusesCertificate } from './faults.ts';
import { createJwts } from './jwt.ts';
import { createLogin, type Session } from './login.ts';
import { notSent } from './not-sent.ts';
import { readPages } from './pages.ts';
import type { Plan, Prepared, Sent } from './plan.ts';
import { planStep } from './plan-step.ts';
import { type ProxyEnv, proxyAuthorization, proxyFor } from './proxy.ts';
import { type BuiltRequest, buildRequest } from './request.ts';
import { signatureHeaders } from './sigv4.ts';
import { createSockets, type Route } from './sockets.ts';
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
  /** @param from the upstream, or what of it goes with requests that are made before its login. */
  const lineOf = (from: HttpUpstream): Line => ({
    prepare(step, scope, headers) {
      const values: Scope = { ...scope, ...context.variables() };
      const request = buildRequest(from, step, values, headers);
      const proxy = proxyFor(request.url, upstream.proxy?.render(values), env);
      return { request, ...onTheWire(request, proxy) };
    },
    send,
    redact,
    clock,
    rateLimit: upstream.rateLimit,
  });

  const attempt = async (
    line: Line,
    plan: Plan,
    scope: Scope,
    headers: PerformOptions['headers'],
  ): Promise<ChainAnswer> => {
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

  const restOf = ({
    signal,
    forCaller = false,
  }: PerformOptions): Pick<Plan, 'party' | 'timeouts' | 'signal'> => ({
    party: forCaller ? 'caller' : 'task',
    timeouts: upstream.timeouts,
    signal: signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]),
  });

  const jwts = createJwts(upstream.jwt, clock);
  /** `jwt` with the tokens that the request reads. */
  const signed = async (from: HttpUpstream, step: HttpStep): Promise<Scope> => {
    const reads = sentReads(from, step);
    return readsRoot(reads, 'jwt') ? { jwt: await jwts.tokens(reads, { ...context.variables() }) } : {};
  };
  const usesLogin = (step: HttpStep): boolean => readsRoot(sentReads(upstream, step), 'login');

  const beforeLogin = withoutLogin(upstream);
  const login =
    upstream.login &&
    createLogin(upstream.login, {
      clock,
      variables: () => context.variables(),
      redact,
      async send(step, scope) {
        try {
          // Calls may wait for it as well as tasks.
          const plan = planStep(step, scope, upstream.maxBytes, restOf({ forCaller: true }));
          const line = lineOf(beforeLogin);
          const ask = async (): Promise<ChainAnswer> =>
            attempt(line, plan, { ...scope, ...(await signed(beforeLogin, step)) }, undefined);
          const { reply } = await ask();
          if (!isUnauthorised(reply) || !refreshed(context)) return reply;
          return (await ask()).reply;
        } catch (error) {
          return notSent(error);
        }
      },
    });

  const line = lineOf(upstream);
  /** One request of a step, made once more when the credential has changed or the login is over. */
  const ask = async (
    step: HttpStep,
    scope: Scope,
    options: PerformOptions,
    maxBytes: number,
  ): Promise<StepReply> => {
    try {
      const plan = planStep(step, scope, maxBytes, restOf(options));
      const session = usesLogin(step) ? await login?.session(plan.signal) : undefined;
      const answer = async (current: Session | undefined): Promise<ChainAnswer> => {
        const credentials = { ...(current && { login: current.values }), ...(await signed(upstream, step)) };
        return attempt(line, plan, { ...scope, ...credentials }, options.headers);
      };
      const answered = await answer(session);
      // A redirect to the login page tells of an old login, and so may the page itself.
      const told = [answered.first, answered].filter(({ trusted }) => trusted).map(({ reply }) => reply);
      const changed = told.some(isUnauthorised) && refreshed(context);
      const { renewOn } = upstream.login ?? {};
      const over =
        session !== undefined && told.some((reply) => isOver(renewOn, reply, context.variables().env));
      const renewed = over ? await login?.renew(session, plan.signal) : session;
      if (!mayRepeat(step, answered) || (!changed && (!over || renewed === undefined))) return answered.reply;
      return (await answer(renewed ?? session)).reply;
    } catch (error) {
      return notSent(error);
    }
  };

  return {
    async perform(step, scope, options = {}) {
      const { maxBytes = upstream.maxBytes } = options;
      if (step.pages === undefined) return ask(step, scope, options, maxBytes);
      const reader = {
        ask: (page: HttpStep, left: number) => ask(page, scope, options, left),
        redact,
        clock,
      };
      return readPages(reader, step, step.pages, scope, maxBytes);
    },
    secrets: () => [...(login?.secrets() ?? []), ...jwts.secrets()],
    async close() {
      closing.abort();
      await sockets.close();
    },
  };
}

/** A request that changes something is not made again after a redirect: it was taken. */
function mayRepeat({ method }: HttpStep, { first, reply }: ChainAnswer): boolean {
  return method === 'GET' || method === 'HEAD' || first.reply === reply;
}

function onTheWire(request: BuiltRequest, proxy: URL | undefined): { route: Route; wire: WireRequest } {
  const { url, method, headers, body, guarded } = request;
  const peer = request.own ? 'own' : request.trusted ? 'trusted' : 'other';
  const path = url.pathname + url.search;
  // Plain http goes to a plain proxy as a request for the absolute URL: many proxies tunnel to port 443 only.
  // What must be checked for a private address is tunnelled all the same, so that the check is in one place.
  if (proxy?.protocol === 'http:' && url.protocol === 'http:' && !guarded) {
    const authorization = proxyAuthorization(proxy);
    return {
      route: { origin: proxy.origin, guarded: false, tunnel: undefined, peer: 'other' },
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
    route: { origin: url.origin, guarded, tunnel: proxy, peer },
    wire: { origin: url.origin, path, method, headers, body },
  };
}

/** Signed at the last moment: a signature holds for minutes, and a request may wait longer for its place. */
async function signedWire({ request, wire }: Prepared, clock: Clock): Promise<WireRequest> {
  if (request.sign === undefined) return wire;
  const added = await signatureHeaders(request, request.sign, clock.now());
  return { ...wire, headers: { ...wire.headers, ...added } };
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
function isOver(renewOn: Expression | undefined, reply: StepReply, env: JsonObject): boolean {
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
