// The task service over a real HTTP server, a store of the test's choice and a clock that the test moves.

import { onTestFinished } from 'vitest';
import type { Adapter } from '../../src/config/adapter.ts';
import { adapterVariables } from '../../src/config/variables.ts';
import type { Connection, Driver } from '../../src/drivers/driver.ts';
import { createHttpDriver } from '../../src/drivers/http/driver.ts';
import { createUpstreams } from '../../src/drivers/upstreams.ts';
import type { JsonObject } from '../../src/exact-json.ts';
import { renderOutcome } from '../../src/mcp/render.ts';
import { createLog, type Log } from '../../src/observability/log.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { createMemoryStore } from '../../src/stores/memory.ts';
import type { Store, StoredTask } from '../../src/stores/store.ts';
import { createChanges } from '../../src/tasks/changes.ts';
import { createTaskService, type TaskService } from '../../src/tasks/service.ts';
import type { Started, StartRequest } from '../../src/tasks/start.ts';
import type { Task, TaskRef } from '../../src/tasks/task.ts';
import { type AdapterParts, adapterText, load } from '../drivers/adapted.ts';
import { createFakeClock, type FakeClock } from '../helpers/fake-clock.ts';
import { type Handler, startHttpServer, type TestServer } from '../helpers/http-server.ts';

export interface ServiceOptions {
  parts?: AdapterParts;
  handler?: Handler;
  store?: Store;
  clock?: FakeClock;
  /** One that is shared with another service. */
  server?: TestServer;
  environment?: { [name: string]: string };
  /** False: the adapter is stored but served no longer. */
  served?: boolean;
  /** Default: nothing is logged. */
  log?: Log;
}

export interface Service {
  tasks: TaskService;
  store: Store;
  clock: FakeClock;
  server: TestServer;
  adapter: Adapter;
  environment: { [name: string]: string };
  /** Starts the tool; the clock runs as fast as it can until the answer is there. */
  start(request?: Partial<StartRequest>): Promise<Started>;
  /** Starts the tool and gives the task that was made. */
  started(request?: Partial<StartRequest>): Promise<StoredTask>;
  get(ref: TaskRef): Promise<StoredTask>;
  /** Moves the clock to the task's next look, and looks. */
  tick(ref: TaskRef): Promise<StoredTask>;
  /** Ticks until `accept` holds, at most `limit` times. */
  until(ref: TaskRef, accept: (task: Task) => boolean, limit?: number): Promise<StoredTask>;
  /** Lets the clock run until `work` is done. */
  passing<T>(work: Promise<T>): Promise<T>;
}

/** Real time that an exchange on the loopback is given before it is taken for one that never ends by itself. */
const patienceMs = 150;

export const hasEnded = (task: Task): boolean => task.stage === 'ended';

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const { parts = {}, store = createMemoryStore(), clock = createFakeClock(), environment = {} } = options;
  const server = options.server ?? (await startHttpServer(options.handler));
  const adapter = load(adapterText(parts));
  environment.UPSTREAM ??= server.origin;
  const metrics = createMetrics();
  const log = options.log ?? createLog('silent', (line) => line);
  let underWay = 0;
  /** Real time at which an exchange last began or ended. */
  let stirredAt = 0;
  const watched = (driver: Driver): Driver => ({
    ...driver,
    connect(upstream, context) {
      const connection: Connection = driver.connect(upstream, context);
      return {
        close: () => connection.close(),
        async perform(...args) {
          underWay++;
          stirredAt = performance.now();
          try {
            return await connection.perform(...args);
          } finally {
            underWay--;
            stirredAt = performance.now();
          }
        },
      };
    },
  });
  const variables = adapterVariables(adapter, { environment });
  const upstreams = createUpstreams({
    served: options.served === false ? [] : [{ name: adapter.name, adapter, variables, env: {} }],
    drivers: [watched(createHttpDriver({ clock, env: {} }) as Driver)],
    loadText: (digest) => store.adapterText(digest),
    environment,
    clock,
    log,
    metrics,
  });
  const tasks = createTaskService({
    store,
    clock,
    changes: createChanges(),
    upstreams,
    render: (_task, outcome) =>
      renderOutcome(outcome, adapter.tools.find(({ key }) => key === 'run')?.output),
    wake: () => {},
    log,
    metrics,
    random: () => 0.5,
  });
  onTestFinished(async () => {
    await upstreams.close();
    if (options.server === undefined) await server.close();
  });

  let moved: Promise<void> = Promise.resolve();
  /** One move at a time: `ms` is asked for when the moves before it are over. */
  const move = (ms: () => number): Promise<void> => {
    moved = moved.then(() => clock.advance(Math.max(0, ms())));
    return moved;
  };

  const passing = async <T>(work: Promise<T>): Promise<T> => {
    let done = false;
    const end = (): void => {
      done = true;
    };
    work.then(end, end);
    while (!done) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      // An exchange is given real time; one that takes long waits for the clock itself.
      if (underWay > 0 && performance.now() - stirredAt < patienceMs) continue;
      await move(() => 250);
    }
    return work;
  };
  const get = async (ref: TaskRef): Promise<StoredTask> => {
    const stored = await store.get(ref);
    if (stored === undefined) throw new Error('the task is gone');
    return stored;
  };
  const tick = async (ref: TaskRef): Promise<StoredTask> => {
    const { schedule } = await get(ref);
    if (schedule !== undefined) await move(() => schedule.dueAt - clock.now());
    await tasks.follow(ref);
    return get(ref);
  };
  const start = (request: Partial<StartRequest> = {}): Promise<Started> =>
    passing(
      tasks.start({
        caller: 'local',
        upstream: upstreams.served(adapter.name, 'run'),
        adapterText: adapter.text,
        args: {},
        confirm: {},
        startKey: undefined,
        ...request,
      }),
    );

  return {
    tasks,
    store,
    clock,
    server,
    adapter,
    environment,
    passing,
    get,
    tick,
    start,
    async started(request) {
      const answer = await start(request);
      if (answer.kind !== 'task') throw new Error(`no task: ${JSON.stringify(answer)}`);
      return answer.stored;
    },
    async until(ref, accept, limit = 1_000) {
      let stored = await get(ref);
      for (let ticks = 0; !accept(stored.task); ticks++) {
        if (ticks >= limit) throw new Error(`not after ${limit} looks: ${stored.task.message}`);
        stored = await tick(ref);
      }
      return stored;
    },
  };
}

/** What the client gets of an ended task. */
export function outcomeOf(stored: StoredTask): {
  result?: {
    content: { type: string; text?: string }[];
    structuredContent?: JsonObject;
    isError?: boolean;
  };
  error?: { code: number; message: string; data: { reason: string } };
} {
  return JSON.parse(stored.outcome ?? 'null');
}

/** How often a request came, as `METHOD /path` without the query. */
export function count(server: TestServer, request: string): number {
  return server.seen.filter(({ method, url }) => `${method} ${url.split('?')[0]}` === request).length;
}
