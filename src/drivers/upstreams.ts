// Every upstream this process talks to: one connection per adapter text, one budget per served adapter. A stored
// task finds its tool by the digest it was started with, whether or not the file still has that text.

import { dirname, join } from 'node:path';
import type { Clock } from '../clock.ts';
import type { Adapter, Limits, Tool } from '../config/adapter.ts';
import { defaultConcurrency } from '../config/limits.ts';
import { loadAdapter } from '../config/load.ts';
import { createRedactor } from '../config/redact.ts';
import type { ServedAdapter } from '../config/registry.ts';
import { adapterVariables, type Variables } from '../config/variables.ts';
import { formatProblem, TaskferryError } from '../errors.ts';
import type { JsonObject } from '../exact-json.ts';
import type { Log } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import { type Budget, createBudget } from './budget.ts';
import type { Connection, Driver, Upstream } from './driver.ts';
import { reachReport, reported, type StepServices, stepServices } from './reports.ts';
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
  env: StepServices['env'];
  connection: Connection;
  tools: Map<string, Upstream>;
}

export function createUpstreams(options: UpstreamsOptions): Upstreams {
  const { served, drivers, clock, metrics, log } = options;
  const verify = verifier(drivers);
  const budgets = new Map<string, { budget: Budget; limits: Limits }>();
  const loaded = new Map<string, Promise<Loaded | { missing: string }>>();
  const current = new Map<string, Loaded>();
  /** Of every adapter text that was loaded, also of those that are served no longer. */
  const known = new Set<() => readonly string[]>();
  const redactor = createRedactor(() => [...known].flatMap((secrets) => secrets()));

  const budgetOf = (name: string, limits: Limits): { budget: Budget; limits: Limits } => {
    const existing = budgets.get(name);
    if (existing) return existing;
    const made = { budget: createBudget(limits, clock), limits };
    budgets.set(name, made);
    return made;
  };

  const load = (name: string, adapter: Adapter, variables: Variables): Loaded => {
    const secrets = (): readonly string[] => [
      ...variables.readableSecrets(),
      ...(connection.secrets?.() ?? []),
    ];
    const services = stepServices(name, variables, secrets, log, metrics);
    const driver = drivers.find(({ format }) => format.name === adapter.upstream.driver);
    if (driver === undefined) throw new Error(`no driver ${adapter.upstream.driver}`);
    known.add(secrets);
    const connection: Connection = reported(
      driver.connect(adapter.upstream.config, {
        variables: () => variables.values(),
        refreshSecrets: () => variables.refresh(),
        redact: services.redact,
        budget: budgetOf(name, adapter.limits).budget,
        exchanged: (result, ms) => metrics.upstreamCall(name, result, ms / 1_000),
      }),
      reachReport(name, clock, log),
    );
    const { redact, env, reports } = services;
    const tools = new Map(
      adapter.tools.map((tool: Tool) => [
        tool.key,
        createUpstream(adapter, name, tool, { connection, redact, env, ...reports(tool.key) }),
      ]),
    );
    return { adapter, env, connection, tools };
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
    env: (name) => current.get(name)?.env() ?? {},
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

const defaultLimits: Limits = { concurrency: defaultConcurrency, rate: undefined };

function keyOf(name: string, digest: string): string {
  return `${digest} ${name}`;
}
