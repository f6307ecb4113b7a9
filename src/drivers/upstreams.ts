// Every upstream this process talks to: one connection per adapter text, one budget per served adapter. A stored
// task finds its tool by the digest it was started with, whether or not the file still has that text.

import { dirname, join } from 'node:path';
import type { Clock } from '../clock.ts';
import type { Adapter, Limits, Tool } from '../config/adapter.ts';
import { loadAdapter } from '../config/load.ts';
import { createRedactor } from '../config/redact.ts';
import type { ServedAdapter } from '../config/registry.ts';
import { adapterVariables, type Variables, type VariableValues } from '../config/variables.ts';
import { formatProblem, TaskferryError } from '../errors.ts';
import type { JsonObject } from '../exact-json.ts';
import type { Log } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import { type Budget, createBudget } from './budget.ts';
import type { Connection, Driver, StepReply, Upstream } from './driver.ts';
import type { StepContext } from './steps.ts';
import { createUpstream } from './upstream.ts';

export interface UpstreamsOptions {
  served: readonly Pick<ServedAdapter, 'name' | 'adapter' | 'variables' | 'env'>[];
  drivers: readonly Driver[];
  /** The stored text of an adapter that a task still follows. */
  loadText(digest: string): Promise<string | undefined>;
  /** For stored adapters that are served no longer. */
  environment: { readonly [name: string]: string | undefined };
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

export interface Upstreams {
  /** Finds what a stored task follows; `missing` says why it can't be loaded. */
  of(task: {
    adapter: string;
    digest: string;
    tool: string;
  }): Promise<{ upstream: Upstream } | { missing: string }>;
  /** A tool of an adapter that is served now. */
  served(name: string, tool: string): Upstream;
  /** Values of the `env` of a served adapter. */
  env(name: string): JsonObject;
  budget(name: string): Budget;
  callsPerSecond(name: string): number | undefined;
  /** Replaces known secret values of all adapters. */
  redact(text: string): string;
  close(): Promise<void>;
}

/** One adapter text in use. */
interface Loaded {
  adapter: Adapter;
  context: StepContext;
  connection: Connection;
  tools: Map<string, Upstream>;
}

export function createUpstreams(options: UpstreamsOptions): Upstreams {
  const { served, drivers, clock, metrics, log } = options;
  const verify = verifier(drivers);
  const budgets = new Map<string, { budget: Budget; limits: Limits }>();
  const loaded = new Map<string, Promise<Loaded | { missing: string }>>();
  const current = new Map<string, Loaded>();
  const redactor = createRedactor(() => served.flatMap(({ variables }) => secretsOf(variables)));

  const budgetOf = (name: string, limits: Limits): { budget: Budget; limits: Limits } => {
    const known = budgets.get(name);
    if (known) return known;
    const made = { budget: createBudget(limits, clock), limits };
    budgets.set(name, made);
    return made;
  };

  const load = (name: string, adapter: Adapter, variables: Variables): Loaded => {
    const services = stepServices(name, variables, log, metrics);
    const driver = drivers.find(({ format }) => format.name === adapter.upstream.driver);
    if (driver === undefined) throw new Error(`no driver ${adapter.upstream.driver}`);
    const connection = measured(
      driver.connect(adapter.upstream.config, {
        variables: () => variables.values(),
        refreshSecrets: () => variables.refresh(),
        redact: services.redact,
        budget: budgetOf(name, adapter.limits).budget,
      }),
      name,
      clock,
      metrics,
      reachReport(name, clock, log),
    );
    const context: StepContext = { connection, ...services };
    const tools = new Map(
      adapter.tools.map((tool: Tool) => [tool.key, createUpstream(adapter, name, tool, context)]),
    );
    return { adapter, context, connection, tools };
  };

  for (const { name, adapter, variables } of served) {
    verify(adapter, variables);
    const entry = load(name, adapter, variables);
    current.set(name, entry);
    loaded.set(keyOf(name, adapter.digest), Promise.resolve(entry));
  }

  const loadStored = async (name: string, digest: string): Promise<Loaded | { missing: string }> => {
    const text = await options.loadText(digest);
    if (text === undefined) return { missing: 'The adapter of this task is no longer stored' };
    const now = served.find((entry) => entry.name === name);
    // Relative paths in the text start where the served file stands, if there is one.
    const file = join(now === undefined ? '.' : dirname(now.adapter.file), `${name} (as stored)`);
    const { adapter, problems } = loadAdapter(text, { file, formats: drivers.map(({ format }) => format) });
    if (adapter === undefined) {
      const first = problems[0];
      return {
        missing: `The stored adapter can't be used: ${first ? formatProblem(first) : 'unknown fault'}`,
      };
    }
    // The text's own names: the served file may list others by now.
    const rename = now === undefined ? {} : { rename: now.env };
    return load(name, adapter, adapterVariables(adapter, { environment: options.environment, ...rename }));
  };

  return {
    async of({ adapter, digest, tool }) {
      const key = keyOf(adapter, digest);
      let entry = loaded.get(key);
      if (entry === undefined) {
        entry = loadStored(adapter, digest);
        loaded.set(key, entry);
        // A store that can't be read now, or a text that can't be used, is tried again later.
        entry.then(
          (result) => 'missing' in result && loaded.delete(key),
          () => loaded.delete(key),
        );
      }
      const found = await entry;
      if ('missing' in found) return found;
      const upstream = found.tools.get(tool);
      return upstream ? { upstream } : { missing: `The stored adapter has no tool ${tool}` };
    },
    served(name, tool) {
      const upstream = current.get(name)?.tools.get(tool);
      if (upstream === undefined) throw new Error(`${name} serves no tool ${tool}`);
      return upstream;
    },
    env: (name) => current.get(name)?.context.env() ?? {},
    budget: (name) => budgetOf(name, current.get(name)?.adapter.limits ?? defaultLimits).budget,
    callsPerSecond(name) {
      const rate = budgets.get(name)?.limits.rate;
      return rate && (rate.calls * 1_000) / rate.perMs;
    },
    redact: (text) => redactor.redact(text),
    async close() {
      for (const { budget } of budgets.values()) budget.close();
      for (const entry of await Promise.all([...loaded.values()])) {
        if (!('missing' in entry)) await entry.connection.close();
      }
    },
  };
}

/** @throws TaskferryError `config_invalid` when the upstream can't work with the values its variables have now. */
function verifier(drivers: readonly Driver[]): (adapter: Adapter, variables: Variables) => void {
  return (adapter, variables) => {
    const driver = drivers.find(({ format }) => format.name === adapter.upstream.driver);
    // A missing variable is somebody else's to report, and may come later.
    if (variables.faults().length > 0) return;
    const fault = driver?.verify(adapter.upstream.config, variables.values());
    if (fault === undefined) return;
    throw new TaskferryError('config_invalid', `${adapter.file}: upstream: ${fault}`, {
      fix: 'mend the adapter or the variable that the value comes from',
    });
  };
}

const defaultLimits: Limits = { concurrency: 8, rate: undefined };

function keyOf(name: string, digest: string): string {
  return `${digest} ${name}`;
}

/** Redaction, variables and reports for the steps of one adapter. */
function stepServices(
  name: string,
  variables: Variables,
  log: Log,
  metrics: Metrics,
): Omit<StepContext, 'connection'> {
  const redactor = createRedactor(() => secretsOf(variables));
  /** What was logged already: an adapter that misses a word misses it at every poll. */
  const reported = new Set<string>();
  const once = (key: string, report: () => void): void => {
    if (reported.has(key) || reported.size >= reportLimit) return;
    reported.add(key);
    report();
  };
  return {
    redact: (text) => redactor.redact(text),
    env: () => valuesOf(variables).env,
    fault(what, error) {
      metrics.expressionFailed(name);
      once(`fault ${what}`, () =>
        log.warn(
          { adapter: name, at: what, error: error.message },
          'an expression could not be evaluated on a reply',
        ),
      );
    },
    unknownStatus(word) {
      metrics.unknownStatus(name);
      once(`status ${word}`, () =>
        log.warn({ adapter: name, status: word }, 'a status that no state rule knows is read as working'),
      );
    },
    pollRejected(status, reason) {
      once(`rejected ${status}`, () =>
        log.warn({ adapter: name, reason }, 'the upstream refuses to tell the status of a job'),
      );
    },
  };
}

const reportLimit = 1_000;

function secretsOf(variables: Variables): string[] {
  return Object.values(valuesOf(variables).secrets);
}

/** Empty while a variable is missing: the connection reports that, with its name, at each call. */
function valuesOf(variables: Variables): VariableValues {
  try {
    return variables.values();
  } catch (error) {
    if (error instanceof TaskferryError) return { env: {}, secrets: {} };
    throw error;
  }
}

/** At most one line of a kind per minute and adapter: an upstream that flaps must not fill the log. */
const reportEveryMs = 60_000;

/** Tells the log when an upstream goes out of reach or refuses the credential, and when it is back. */
function reachReport(adapter: string, clock: Clock, log: Log): (reply: StepReply) => void {
  let down: { since: number; told: boolean } | undefined;
  let lastDown = Number.NEGATIVE_INFINITY;
  let lastRefused = Number.NEGATIVE_INFINITY;
  return (reply) => {
    const now = clock.monotonic();
    if (reply.kind === 'failed') {
      if (reply.code === 'aborted' || reply.code === 'invalid_request' || down !== undefined) return;
      down = { since: now, told: now - lastDown >= reportEveryMs };
      if (!down.told) return;
      lastDown = now;
      log.warn({ adapter, reason: reply.reason }, 'the upstream is out of reach');
      return;
    }
    if (down?.told) {
      const seconds = Math.round((now - down.since) / 1_000);
      log.info({ adapter, seconds }, 'the upstream is back');
    }
    down = undefined;
    const status = reply.response.status;
    const refused = (status === 401n || status === 403n) && reply.limited !== true;
    if (!refused || now - lastRefused < reportEveryMs) return;
    lastRefused = now;
    log.warn({ adapter, status: Number(status) }, 'the upstream refuses the credential');
  };
}

function measured(
  connection: Connection,
  adapter: string,
  clock: Clock,
  metrics: Metrics,
  report: (reply: StepReply) => void,
): Connection {
  return {
    async perform(step, scope, options) {
      const started = clock.monotonic();
      const reply = await connection.perform(step, scope, options);
      metrics.upstreamCall(adapter, reply.kind, (clock.monotonic() - started) / 1_000);
      report(reply);
      return reply;
    },
    close: () => connection.close(),
  };
}
