// The HTTP driver's connection: performs the steps of one adapter against its upstream.

import type { LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../../clock.ts';
import { EvaluationFault, type Expression, type Scope } from '../../config/expression.ts';
import { readsRoot } from '../../config/expression-names.ts';
import { TaskferryError } from '../../errors.ts';
import type { Json, JsonObject } from '../../exact-json.ts';
import { BudgetEnded, type Party } from '../budget.ts';
import type { ConnectContext, Connection, PerformOptions, StepReply } from '../driver.ts';
import { bodyReads } from './body.ts';
import type { HttpStep, HttpUpstream } from './compiled.ts';
import { ConnectRefused } from './connectors.ts';
import { additionReads, additionsFor, headerReads, withoutLogin } from './credentials.ts';
import { type Exchange, exchange, type WireRequest } from './exchange.ts';
import { describeFault, isReset, refusesCertificate } from './faults.ts';
import { createJwts } from './jwt.ts';
import { createLogin, type Session } from './login.ts';
import { hostAndPort } from './origins.ts';
import { type ProxyEnv, proxyAuthorization, proxyFor } from './proxy.ts';
import { readReply } from './reply.ts';
import { type BuiltRequest, buildRequest } from './request.ts';
import { RequestFault } from './request-fault.ts';
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

  /** One request on the wire, within the budget. */
  const send = async (prepared: Prepared, plan: Plan, fresh: boolean): Promise<Sent> => {
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

  const attempt = async (prepared: Prepared, plan: Plan): Promise<StepReply> => {
    let sent = await send(prepared, plan, false);
    // The upstream closed an idle socket at the moment it was used again. Asking anew does no harm for these.
    if (sent.stale && /^(GET|HEAD)$/.test(plan.step.method)) sent = await send(prepared, plan, true);
    const where = hostAndPort(prepared.request.url);
    const faultContext = { where, timeouts: upstream.timeouts, maxBytes: plan.bodyCap, sent: sent.sent };
    if (sent.outcome.kind === 'failed') {
      return { kind: 'failed', ...describeFault(sent.outcome.error, faultContext), sent: sent.sent };
    }
    const reply = await readReply(sent.outcome, {
      step: plan.step,
      url: prepared.request.shownUrl,
      maxBytes: plan.bodyCap,
      now: clock.now(),
      describe: (error) => describeFault(error, faultContext),
      redact: (text) => context.redact?.(text) ?? text,
    });
    if (reply.kind === 'reply' && prepared.request.own) {
      if (reply.limited) {
        budget?.pauseUntil(
          clock.now() + Math.max(reply.retryAfterMs ?? pauseAfter(reply.response.status), shortestPause),
        );
        nextPause = Math.min(nextPause * 2, longestPause);
      } else nextPause = firstPause;
    }
    return reply;
  };

  const planFor = (step: HttpStep, { signal, maxBytes, forCaller = false }: PerformOptions): Plan => {
    const bodyCap = maxBytes ?? upstream.maxBytes;
    const discard = step.read === 'none';
    return {
      step,
      bodyCap,
      party: forCaller ? 'caller' : 'task',
      discard,
      // Enough of it is kept to tell a rate limit by its message.
      maxBytes: discard ? Math.min(bodyCap, discardedBytes) : bodyCap,
      timeouts: upstream.timeouts,
      signal: signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]),
    };
  };

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
      redact: (text) => context.redact?.(text) ?? text,
      async send(step, scope) {
        // Calls may wait for it as well as tasks.
        const plan = planFor(step, { forCaller: true });
        try {
          const send = async (): Promise<StepReply> =>
            attempt(
              prepare(beforeLogin, step, { ...scope, ...(await signed(beforeLogin, step)) }, undefined),
              plan,
            );
          const reply = await send();
          if (!isUnauthorised(reply) || !refreshed(context)) return reply;
          return await send();
        } catch (error) {
          return notSent(error);
        }
      },
    });

  return {
    async perform(step, scope, options = {}) {
      const plan = planFor(step, options);
      try {
        const session = usesLogin(step) ? await login?.session(plan.signal) : undefined;
        const ready = async (current: Session | undefined): Promise<Prepared> => {
          const credentials = {
            ...(current && { login: current.values }),
            ...(await signed(upstream, step)),
          };
          return prepare(upstream, step, { ...scope, ...credentials }, options.headers);
        };
        const prepared = await ready(session);
        const reply = await attempt(prepared, plan);
        if (reply.kind === 'failed' || !prepared.request.trusted) return reply;
        const changed = isUnauthorised(reply) && refreshed(context);
        const over = session !== undefined && isOver(upstream.login?.renewOn, reply, context.variables().env);
        const renewed = over ? await login?.renew(session, plan.signal) : session;
        if (!changed && (!over || renewed === undefined)) return reply;
        return await attempt(await ready(renewed ?? session), plan);
      } catch (error) {
        return notSent(error);
      }
    },
    secrets: () => [...(login?.secrets() ?? []), ...jwts.secrets()],
    async close() {
      closing.abort();
      await sockets.close();
    },
  };
}

/** Most bytes that are read of a body that the step doesn't want; the socket is given up beyond. */
const discardedBytes = 64 * 1024;

interface Plan {
  step: HttpStep;
  party: Party;
  /** Most bytes of a body, decoded. */
  bodyCap: number;
  /** Most bytes as they arrive. */
  maxBytes: number;
  discard: boolean;
  timeouts: HttpUpstream['timeouts'];
  signal: AbortSignal;
}

interface Prepared {
  request: BuiltRequest;
  route: Route;
  wire: WireRequest;
}

interface Sent {
  outcome: Exchange;
  /** A kept-alive socket was closed under the request before an answer came. */
  stale: boolean;
  sent: boolean;
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

/** What is thrown before a byte goes out, as a reply. Anything else is a fault of ours and goes on up. */
function notSent(error: unknown): StepReply {
  if (error instanceof RequestFault)
    return { kind: 'failed', code: error.code, sent: false, reason: error.message };
  if (error instanceof EvaluationFault) {
    return { kind: 'failed', code: 'invalid_request', sent: false, reason: error.message };
  }
  if (error instanceof TaskferryError)
    return { kind: 'failed', code: 'credential', sent: false, reason: error.message };
  if (error instanceof ConnectRefused)
    return { kind: 'failed', code: 'connect', sent: false, reason: error.message };
  if (error instanceof BudgetEnded) {
    return {
      kind: 'failed',
      code: 'aborted',
      sent: false,
      reason: `given up before it was sent: ${error.message}`,
    };
  }
  throw error;
}
