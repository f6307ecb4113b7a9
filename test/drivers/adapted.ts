// A tool of a small adapter against a real HTTP server, as tasks see it.

import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { Adapter } from '../../src/config/adapter.ts';
import { loadAdapter } from '../../src/config/load.ts';
import { adapterVariables } from '../../src/config/variables.ts';
import type { Driver, JobView, Poll, PollObservation, Upstream } from '../../src/drivers/driver.ts';
import { createHttpDriver } from '../../src/drivers/http/driver.ts';
import { createUpstreams, type Upstreams } from '../../src/drivers/upstreams.ts';
import { formatProblem } from '../../src/errors.ts';
import { createLog, type Log } from '../../src/observability/log.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { type Handler, json, startHttpServer, type TestServer } from '../helpers/http-server.ts';

/** Parts of an adapter with one tool `run`, as YAML: `top` at column 0, all others as the tool's fields at column 4. */
export interface AdapterParts {
  top?: string;
  /** Fields of `upstream` after driver and baseUrl, at column 2. */
  upstream?: string;
  create?: string;
  status?: string;
  tool?: string;
}

export const plainCreate = `    create:
      request: POST /jobs
      json: { key: "\${{ task.key }}" }
      capture: { id: response.body.id }`;

/** Every phase has its word. */
export const plainStatus = `    status:
      request: GET /jobs/\${{ job.id }}
      state:
        of: response.body.state
        working: [running]
        input_required: [waiting]
        succeeded: [done]
        failed: [failed]
        cancelled: [stopped]
        errored: [broken]
      message: \${{ response.body.message }}`;

/** Sends the secret TOKEN with every request. */
export const withToken = {
  top: 'secrets: [TOKEN]',
  upstream: `  auth: { bearer: "\${{ secrets.TOKEN }}" }`,
};

/** A create step that captures `id` and says how it may be recovered. */
export function createWith(recovery: string): string {
  return `${plainCreate}\n      ${recovery}`;
}

export const findByKey = `find:
        request: GET /jobs
        query: { key: "\${{ task.key }}" }
        within: 5s
        capture: { id: "response.body.jobs[0].id" }`;

export function adapterText(parts: AdapterParts = {}): string {
  const { top = '', upstream = '', create = plainCreate, status = plainStatus, tool = '' } = parts;
  return `version: 1
name: jobs
env: [UPSTREAM]
${top}
upstream:
  driver: http
  baseUrl: \${{ env.UPSTREAM }}
${upstream}
tools:
  run:
    description: Runs a job.
    input: { type: object, properties: { n: { type: integer }, name: { type: string } } }
${create}
${status}
${tool}
`;
}

/** @throws Error with the problems of a text that does not load. */
export function load(text: string): Adapter {
  const { adapter, problems } = loadAdapter(text, {
    file: 'jobs.yaml',
    formats: [createHttpDriver({ env: {} }).format as Driver['format']],
  });
  if (adapter === undefined) throw new Error(problems.map(formatProblem).join('\n'));
  return adapter;
}

export interface Adapted {
  adapter: Adapter;
  upstream: Upstream;
  upstreams: Upstreams;
  server: TestServer;
  /** What `/metrics` says. */
  metrics(): Promise<string>;
  poll(view?: Partial<JobView>): Promise<Poll>;
}

export interface AdaptedOptions {
  handler?: Handler;
  /** Secrets and further variables, read at each call. UPSTREAM is added to it. */
  environment?: { [name: string]: string };
  clock?: Clock;
  /** Default: nothing is logged. */
  log?: Log;
}

export async function adapted(parts: AdapterParts, options: AdaptedOptions = {}): Promise<Adapted> {
  const { handler, environment = {}, clock = systemClock } = options;
  const server = await startHttpServer(handler);
  const adapter = load(adapterText(parts));
  const metrics = createMetrics();
  environment.UPSTREAM ??= server.origin;
  const variables = adapterVariables(adapter, { environment });
  const upstreams = createUpstreams({
    served: [{ name: adapter.name, adapter, variables, env: {} }],
    drivers: [createHttpDriver({ clock, env: {} }) as Driver],
    loadText: async () => undefined,
    environment: {},
    clock,
    log: options.log ?? createLog('silent', (line) => line),
    metrics,
  });
  onTestFinished(async () => {
    await upstreams.close();
    await server.close();
  });
  const upstream = upstreams.served(adapter.name, 'run');
  return {
    adapter,
    upstream,
    upstreams,
    server,
    metrics: () => metrics.registry.metrics(),
    poll: (view) => upstream.poll(viewWith(view)),
  };
}

export const sampleKey = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';

/** A job called 7. */
export function viewWith(view: Partial<JobView> = {}): JobView {
  const createdAt = Date.UTC(2031, 4, 6, 7, 8, 9);
  return { key: sampleKey, createdAt, args: {}, confirm: {}, job: { id: 7n }, statusStage: 0, ...view };
}

export type Status = Extract<PollObservation, { kind: 'status' }>;

export function statusOf({ observation }: Poll): Status {
  if (observation.kind !== 'status') throw new Error(`no status: ${JSON.stringify(observation)}`);
  return observation;
}

/** Answers every request in the same way. */
export function always(status: number, body: unknown, headers: { [name: string]: string } = {}): Handler {
  return (_request, response) => json(response, status, body, headers);
}

/** Answers by `METHOD /path`; anything else is a 404. A list is gone through, its last one stays. */
export function routes(table: { [route: string]: Handler | readonly Handler[] }): Handler {
  const times = new Map<string, number>();
  return (request, response, raw) => {
    const route = `${request.method} ${request.url.split('?')[0]}`;
    const time = times.get(route) ?? 0;
    times.set(route, time + 1);
    const entry = table[route];
    const handler = typeof entry === 'function' ? entry : entry?.[Math.min(time, entry.length - 1)];
    if (handler === undefined) json(response, 404, { error: `no ${route}` });
    else handler(request, response, raw);
  };
}

/** Takes the request and never answers. */
export const silence: Handler = () => {};

/** Takes the request and closes the connection. */
export const hangUp: Handler = (_request, response) => void response.destroy();

export const page: Handler = (_request, response) => {
  response.writeHead(404, { 'content-type': 'text/html' }).end('<html><body>no such backend</body></html>');
};
