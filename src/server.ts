// Puts the parts together: the only file that names concrete stores and drivers.

import type { ServedAdapter } from './config/registry.ts';
import type { Settings } from './config/settings.ts';
import type { Driver } from './drivers/driver.ts';
import { createHttpDriver } from './drivers/http/driver.ts';
import { createUpstreams, type Upstreams } from './drivers/upstreams.ts';
import { type Catalog, createCatalog, serveTool } from './mcp/catalog.ts';
import { createStateCodec, stateKeys } from './mcp/confirm.ts';
import { listenOn, refuseOpenBind } from './mcp/http-server.ts';
import { withTaskListen } from './mcp/listen.ts';
import { createMcp } from './mcp/mcp-handler.ts';
import { renderOutcome } from './mcp/render.ts';
import { createUsedConfirmations } from './mcp/used-confirmations.ts';
import { createLog } from './observability/log.ts';
import { createMetrics } from './observability/metrics.ts';
import { startLocalScheduler } from './scheduler/local.ts';
import { createSteadyClock } from './steady-clock.ts';
import { openSqliteStore } from './stores/sqlite.ts';
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
  const store = await openSqliteStore({ path: settings.store.path, log });
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
    const http = await listenOn(settings.listen, {
      fetch: listen.fetch,
      requestBytes: settings.limits.requestBytes,
      ready: () => store.check(),
      metrics,
      log,
      stopping: stopping.signal,
    });
    return {
      url: settings.listen.publicUrl ?? http.url,
      tools: catalog.tools.map(({ name }) => name),
      following,
      async close(graceMs = defaultGraceMs) {
        stopping.abort();
        listen.closeAll();
        await http.drain(graceMs);
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
