// Puts the parts together: the only file that names concrete stores and drivers.

import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { localhostAllowedHostnames, localhostAllowedOrigins } from '@modelcontextprotocol/server';
import type { ServedAdapter } from './config/registry.ts';
import type { Settings } from './config/settings.ts';
import type { Driver } from './drivers/driver.ts';
import { createHttpDriver } from './drivers/http/driver.ts';
import { createUpstreams, type Upstreams } from './drivers/upstreams.ts';
import { TaskferryError } from './errors.ts';
import { type Catalog, createCatalog, serveTool } from './mcp/catalog.ts';
import { createStateCodec } from './mcp/confirm.ts';
import { createHttpApp } from './mcp/http.ts';
import { type TaskListen, withTaskListen } from './mcp/listen.ts';
import { createMcp } from './mcp/mcp-handler.ts';
import { renderOutcome } from './mcp/render.ts';
import { createUsedConfirmations } from './mcp/used-confirmations.ts';
import { createLog, type Log } from './observability/log.ts';
import { createMetrics, type Metrics } from './observability/metrics.ts';
import { startLocalScheduler } from './scheduler/local.ts';
import { createSteadyClock } from './steady-clock.ts';
import { openSqliteStore } from './stores/sqlite.ts';
import type { Store } from './stores/store.ts';
import { createChanges } from './tasks/changes.ts';
import { withoutTaskIds } from './tasks/ids.ts';
import type { Outcome } from './tasks/outcome.ts';
import { createTaskService, type TaskService } from './tasks/service.ts';
import type { Task } from './tasks/task.ts';
import { within } from './tasks/within.ts';
import { version } from './version.ts';

/** Every driver taskferry knows; a new one is one line here. */
export const drivers: readonly Driver[] = [createHttpDriver() as Driver];

export const formats = drivers.map(({ format }) => format);

export interface ServerOptions {
  settings: Settings;
  adapters: readonly ServedAdapter[];
  /** Variables of stored adapters that are served no longer are read from it. */
  environment: { readonly [name: string]: string | undefined };
}

export interface RunningServer {
  /** Where MCP is served. */
  url: string;
  tools: readonly string[];
  /** Tasks of earlier runs that are followed on. */
  following: number;
  /** Answers what is under way, for at most `graceMs`, and stops. Upstream jobs are left alone. */
  close(graceMs?: number): Promise<void>;
}

interface TaskScheduler {
  tasks: TaskService;
  started: Promise<void>;
  stop(): Promise<void>;
}

/** Longest wait for requests under way when the server stops. */
const defaultGraceMs = 25_000;
/** The same for polls after that: one that is cut off is made again after the next start. */
const tickGraceMs = 3_000;
/** Against clients that send their request byte by byte. */
const headersTimeoutMs = 10_000;
const requestTimeoutMs = 30_000;

/** @throws TaskferryError, with nothing left open, when the store or the port can't be had. */
export async function startServer({
  settings,
  adapters,
  environment,
}: ServerOptions): Promise<RunningServer> {
  refuseOpenBind(settings.listen.host);
  const clock = createSteadyClock();
  const metrics = createMetrics();
  // The log redacts with the secrets of all adapters, which are known once the upstreams are made.
  let redact = (text: string): string => text;
  const log = createLog(settings.log.level, (line) => withoutTaskIds(redact(line)));
  const upstreams = createUpstreams({
    served: adapters,
    drivers,
    loadText: (digest) => store.adapterText(digest),
    environment,
    clock,
    log,
    metrics,
  });
  redact = (text) => upstreams.redact(text);
  const store = await openSqliteStore({ path: settings.store.slice('sqlite:'.length), log });
  let scheduler: TaskScheduler | undefined;
  /** Ends the ticks under way, those that still wait for their upstream after `graceMs` by cutting them off. */
  const stop = async (graceMs: number): Promise<void> => {
    const ticks = scheduler?.stop() ?? Promise.resolve();
    await within(clock, graceMs, ticks);
    await upstreams.close();
    await ticks;
    await store.close();
  };
  try {
    const catalog = catalogOf(adapters, upstreams);
    scheduler = startTasks();
    const { tasks } = scheduler;
    await scheduler.started;
    metrics.countTasks(() => store.counts());
    const stopping = new AbortController();
    const following = (await store.counts())
      .filter(({ stage }) => stage !== 'ended')
      .reduce((sum, { count }) => sum + count, 0);
    const codec = createStateCodec(await stateKeys(store, settings.requestState.keys));
    const mcp = createMcp({
      version,
      log,
      catalog,
      tasks,
      clock,
      codec,
      confirmations: createUsedConfirmations(clock),
      envOf: ({ servedAs }) => upstreams.env(servedAs),
      redact: (text) => upstreams.redact(text),
      stopping: stopping.signal,
    });
    const listen = withTaskListen(mcp, {
      tasks,
      clock,
      metrics,
      serverInfo: { name: 'taskferry', version },
    });
    const { server, port } = await listenOn(settings, {
      listen,
      store,
      metrics,
      log,
      stopping: stopping.signal,
    });
    const url = `http://${bracketed(settings.listen.host)}:${port}/mcp`;
    return {
      url: settings.listen.publicUrl ?? url,
      tools: catalog.tools.map(({ name }) => name),
      following,
      async close(graceMs = defaultGraceMs) {
        stopping.abort();
        listen.closeAll();
        await drain(server, graceMs);
        await mcp.close();
        await stop(tickGraceMs);
      },
    };
  } catch (error) {
    await stop(0);
    throw error;
  }

  function startTasks(): TaskScheduler {
    const tasks = createTaskService({
      store,
      clock,
      changes: createChanges((error) => log.error({ err: error }, 'a listener of task changes failed')),
      upstreams,
      render: (task, outcome) => render(adapters, task, outcome),
      wake: (adapter, dueAt) => local.wake(adapter, dueAt),
      log,
      metrics,
      random: Math.random,
    });
    const local = startLocalScheduler({
      store,
      clock,
      log,
      follow: (ref) => tasks.follow(ref),
      expire: (ref) => tasks.expire(ref),
      budget: (adapter) => upstreams.budget(adapter),
      callsPerSecond: (adapter) => upstreams.callsPerSecond(adapter),
    });
    return { tasks, started: local.started, stop: () => local.stop() };
  }
}

/** Without authentication everybody who reaches the port is the one caller, so only this machine may. */
function refuseOpenBind(host: string): void {
  if (localhostAllowedHostnames().includes(bracketed(host)) || host.startsWith('127.')) return;
  throw new TaskferryError(
    'listen_refused',
    `taskferry does not listen on ${host}: it has no authentication yet`,
    {
      fix: 'listen on 127.0.0.1, and let a proxy that authenticates callers forward to it',
    },
  );
}

function catalogOf(adapters: readonly ServedAdapter[], upstreams: Upstreams): Catalog {
  return createCatalog(
    adapters.flatMap(({ name: servedAs, adapter, tools }) =>
      tools.map(({ name, tool }) =>
        serveTool(name, servedAs, adapter, tool, upstreams.served(servedAs, tool.key)),
      ),
    ),
  );
}

/** The output schema is the one of the text that the task follows, while that text is served. */
function render(adapters: readonly ServedAdapter[], task: Task, outcome: Outcome): string {
  const entry = adapters.find(({ name, adapter }) => name === task.adapter && adapter.digest === task.digest);
  const tool = entry?.adapter.tools.find(({ key }) => key === task.tool);
  return renderOutcome(outcome, tool?.output);
}

async function stateKeys(store: Store, configured: readonly string[]): Promise<readonly string[]> {
  if (configured.length > 0) return configured;
  return [
    await store.setting('request_state_key', () =>
      Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url'),
    ),
  ];
}

async function listenOn(
  settings: Settings,
  parts: { listen: TaskListen; store: Store; metrics: Metrics; log: Log; stopping: AbortSignal },
): Promise<{ server: HttpServer; port: number }> {
  const { host, port, publicUrl, hosts, origins } = settings.listen;
  const publicHosts = publicUrl === undefined ? [] : [new URL(publicUrl).hostname];
  const app = createHttpApp({
    fetch: parts.listen.fetch,
    hosts: [...localhostAllowedHostnames(), bracketed(host), ...hosts, ...publicHosts],
    origins: [...localhostAllowedOrigins(), ...origins.map(originHost), ...publicHosts],
    requestBytes: settings.limits.requestBytes,
    ready: () => parts.store.check(),
    metrics: parts.metrics,
    log: parts.log,
    stopping: parts.stopping,
  });
  const server = createServer({ headersTimeout: headersTimeoutMs, requestTimeout: requestTimeoutMs }, app);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen(port, host, resolve);
  });
  return { server, port: (server.address() as AddressInfo).port };
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): TaskferryError {
  if (error.code === 'EADDRINUSE') {
    return new TaskferryError('port_in_use', `port ${port} on ${host} is in use`, {
      cause: error,
      fix: 'stop what listens there, or choose another port with --port (0 takes a free one)',
    });
  }
  return new TaskferryError(
    'listen_failed',
    `can't listen on ${host}:${port}: ${error.code ?? error.message}`,
    {
      cause: error,
      fix: 'check --host and --port',
    },
  );
}

/** Takes no new requests and lets those under way finish. */
async function drain(server: HttpServer, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(cut);
}

/** The SDK compares host names; an entry may be written as the full origin. */
function originHost(origin: string): string {
  return origin.includes('://') && !origin.endsWith('://*') ? new URL(origin).hostname : origin;
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}
