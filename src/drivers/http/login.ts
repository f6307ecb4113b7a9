// The login of one connection: made when it is needed, shared by all requests, made anew before it ends.

import type { Clock } from '../../clock.ts';
import { EvaluationFault, type Expression, type Scope } from '../../config/expression.ts';
import { type Json, type JsonObject, stringifyExact } from '../../exact-json.ts';
import { BudgetEnded } from '../budget.ts';
import { cleanLine } from '../clean-text.ts';
import type { StepReply } from '../driver.ts';
import type { HttpLogin, HttpStep, LoginStep } from './compiled.ts';
import { RequestFault } from './request-fault.ts';

export interface LoginOptions {
  clock: Clock;
  /** Makes one request of the login; never rejects for what the network does. */
  send(step: HttpStep, scope: Scope): Promise<StepReply>;
  /** Values of `env` and `secrets` now. @throws TaskferryError */
  variables(): { env: JsonObject; secrets: JsonObject };
  redact(text: string): string;
}

/** What one login gave. */
export interface Session {
  /** Captures by name. */
  values: JsonObject;
  /** Monotonic milliseconds: from then on a new one is wanted, and from `endsAt` on this one is of no use. */
  renewAt: number;
  endsAt: number;
  /** The variables it was made with. */
  variables: string;
  /** It replaced one that the upstream refused; undefined or when that was. */
  renewedAt: number | undefined;
}

export interface Login {
  /**
   * The session to send, from a login if there is none.
   * @throws RequestFault with code `credential` when the login fails. @throws BudgetEnded when `signal` aborts.
   * @throws TaskferryError when a variable is missing.
   */
  session(signal: AbortSignal): Promise<Session>;
  /**
   * Another session than the one that the upstream refused; undefined when that one was itself a replacement, so that
   * a further one is not likely to fare better. Throws as {@link Login.session} does.
   */
  renew(refused: Session, signal: AbortSignal): Promise<Session | undefined>;
  /** Texts of the last sessions, for redaction. */
  secrets(): Iterable<string>;
}

const defaultLifetime = 50 * 60_000;
const longestLifetime = 86_400_000;
/** A session is renewed this long before its end, or a tenth of its life if that is less. */
const renewBefore = 60_000;
/** A replacement that the upstream refuses as well is kept this long. */
const replacementRest = 60_000;
/** After a failure the next login waits, doubling up to the longest. */
const firstPause = 1000;
const longestPause = 60_000;
/** Most bytes of one captured value. */
const largestCapture = 16 * 1024;
/** Texts of sessions that are still kept out of what is shown, the newest ones. */
const mostRemembered = 64;

/** Makes no request yet. */
export function createLogin(login: HttpLogin, options: LoginOptions): Login {
  const { clock } = options;
  let current: Session | undefined;
  let underWay: Promise<Session | RequestFault> | undefined;
  let failure: { fault: RequestFault; until: number; pause: number; variables: string } | undefined;
  const remembered = new Set<string>();

  /** Never rejects for what the upstream does. */
  const logIn = async (variables: string, renewedAt: number | undefined): Promise<Session | RequestFault> => {
    const started = clock.monotonic();
    try {
      const { values, lifetime } = await runSteps(login.steps, options, (found) =>
        remember(remembered, found),
      );
      failure = undefined;
      const life = Math.min(lifetime, longestLifetime);
      current = {
        values,
        renewAt: started + life - Math.min(renewBefore, life / 10),
        endsAt: started + life,
        variables,
        renewedAt,
      };
      return current;
    } catch (error) {
      if (!(error instanceof LoginFailed)) throw error;
      const last = failure?.variables === variables ? failure.pause : 0;
      const pause = Math.min(longestPause, Math.max(firstPause, last * 2));
      const fault = new RequestFault(`the login failed: ${error.message}`, 'credential');
      failure = { fault, until: clock.monotonic() + Math.max(pause, error.retryAfterMs), pause, variables };
      return fault;
    } finally {
      underWay = undefined;
    }
  };

  const session = async (signal: AbortSignal, renewedAt?: number): Promise<Session> => {
    const variables = JSON.stringify(options.variables());
    const now = clock.monotonic();
    // Other variables mean another credential: nothing that was made with the old ones is sent any more.
    const known = current?.variables === variables ? current : undefined;
    if (known !== undefined && now < known.renewAt) return known;
    const stillGood = (): Session | undefined =>
      known === current && known !== undefined && clock.monotonic() < known.endsAt ? known : undefined;
    if (failure !== undefined && failure.variables === variables && now < failure.until) {
      const usable = stillGood();
      if (usable) return usable;
      throw failure.fault;
    }
    underWay ??= logIn(variables, renewedAt);
    const outcome = await unlessAborted(underWay, signal);
    if (!(outcome instanceof RequestFault)) return outcome;
    const usable = stillGood();
    if (usable) return usable;
    throw outcome;
  };

  return {
    session: (signal) => session(signal),
    async renew(refused, signal) {
      if (current === refused) {
        const now = clock.monotonic();
        if (refused.renewedAt !== undefined && now - refused.renewedAt < replacementRest) return undefined;
        current = undefined;
        return session(signal, now);
      }
      return session(signal);
    },
    secrets: () => [...textsOf(current?.values ?? {}), ...remembered],
  };
}

/** The message is for people and holds nothing of a reply that may carry a credential. */
class LoginFailed extends Error {
  override readonly name = 'LoginFailed';
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs = 0) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** @throws LoginFailed */
async function runSteps(
  steps: readonly LoginStep[],
  options: LoginOptions,
  remember: (found: Json) => void,
): Promise<{ values: JsonObject; lifetime: number }> {
  const values: JsonObject = {};
  let lifetime: number | undefined;
  for (const step of steps) {
    const reply = await options.send(step.request, { login: { ...values } });
    if (reply.kind === 'failed') throw new LoginFailed(`${step.name}: ${reply.reason}`);
    const scope = (): Scope => ({
      env: options.variables().env,
      login: values,
      response: reply.response as JsonObject,
    });
    checkReply(step, reply, scope(), options.redact);
    for (const { name, value, optional } of step.capture) {
      const found = quietly(value, scope());
      if (found === undefined || found === null) {
        if (optional) continue;
        throw new LoginFailed(
          `${step.name}: HTTP ${String(reply.response.status)} gives no value for ${name}`,
        );
      }
      if (Buffer.byteLength(stringifyExact(found)) > largestCapture)
        throw new LoginFailed(`${step.name}: ${name} is larger than ${largestCapture} bytes`);
      remember(found);
      values[name] = found;
    }
    const holds =
      typeof step.expires === 'object'
        ? lifetimeOf(quietly(step.expires, scope()), options.clock.now())
        : step.expires;
    if (holds !== undefined) lifetime = Math.min(lifetime ?? holds, holds);
  }
  return { values, lifetime: lifetime ?? defaultLifetime };
}

/** @throws LoginFailed; only error replies are quoted, as others may hold a credential that nobody knows yet. */
function checkReply(
  step: LoginStep,
  reply: Extract<StepReply, { kind: 'reply' }>,
  scope: Scope,
  redact: (text: string) => string,
): void {
  const status = String(reply.response.status);
  const expected = step.expect === undefined ? reply.ok : quietly(step.expect, scope) === true;
  if (expected && reply.unreadable === undefined) return;
  const wait = Math.min(reply.retryAfterMs ?? 0, longestRetryAfter);
  if (Number(status) < 400) {
    const unmet = step.expect === undefined ? 'a 2xx is wanted' : 'it is not what expect wants';
    const why = expected ? `its body is not what read: ${step.request.read} wants` : unmet;
    throw new LoginFailed(`${step.name}: HTTP ${status}: ${why}`, wait);
  }
  const { body } = reply.response;
  const said =
    reply.unreadable ?? (typeof body === 'string' ? body : body === null ? '' : stringifyExact(body));
  const shown = cleanLine(said, 300, redact);
  throw new LoginFailed(`${step.name}: HTTP ${status}${shown === '' ? '' : `: ${shown}`}`, wait);
}

const longestRetryAfter = 10 * 60_000;

/** A fault may quote the reply, so it is not told. */
function quietly(expression: Expression, scope: Scope): Json | undefined {
  try {
    return expression.evaluate(scope);
  } catch (error) {
    if (error instanceof EvaluationFault) return undefined;
    throw error;
  }
}

/**
 * Seconds from now (also as text), or a time in ISO 8601. Milliseconds; undefined when it is neither, since what says
 * nothing about the end must not keep anybody out.
 */
function lifetimeOf(value: Json | undefined, now: number): number | undefined {
  if (typeof value === 'string' && !/^\d+(\.\d+)?s?$/.test(value)) {
    const time = Date.parse(value);
    return Number.isNaN(time) ? undefined : Math.max(0, time - now);
  }
  const seconds = Number(typeof value === 'string' ? value.replace(/s$/, '') : (value ?? Number.NaN));
  return Number.isFinite(seconds) && typeof value !== 'boolean' ? Math.max(0, seconds * 1000) : undefined;
}

function remember(remembered: Set<string>, found: Json): void {
  for (const text of textsOf(found)) remembered.add(text);
  for (const text of remembered) {
    if (remembered.size <= mostRemembered) return;
    remembered.delete(text);
  }
}

function textsOf(value: Json): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsOf);
}

/** Whoever gives up leaves; the login goes on for the others. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(new BudgetEnded('given up'));
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new BudgetEnded('given up'));
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
