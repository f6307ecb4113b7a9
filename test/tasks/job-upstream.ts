// A job API for tests of the task life: creates by POST, knows keys if told to, ends each job at its second look.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface UpstreamJob {
  id: number;
  key: string | undefined;
  looks: number;
  state: string;
}

export interface JobUpstream {
  url: string;
  jobs: UpstreamJob[];
  /** Every request as `METHOD /path`, in order. */
  requests: string[];
  /** Called once a job is created and before the reply is sent; the reply is then withheld. */
  onCreate: (() => void) | undefined;
  /** Replaces the answer to a request; undefined answers as usual. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  close(): Promise<void>;
}

export async function startJobUpstream({ honoursKeys = false } = {}): Promise<JobUpstream> {
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const upstream: JobUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    jobs: [],
    requests: [],
    onCreate: undefined,
    intercept: undefined,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const url = new URL(request.url ?? '/', 'http://upstream');
    upstream.requests.push(`${request.method} ${url.pathname}`);
    let text = '';
    for await (const chunk of request) text += chunk;
    if (upstream.intercept?.(request, response)) return;
    const [, , id, action] = url.pathname.split('/');
    if (request.method === 'POST' && id === undefined) {
      const header = request.headers['idempotency-key'];
      const key =
        (honoursKeys ? (header as string | undefined) : undefined) ??
        (JSON.parse(text || '{}').key as string | undefined);
      const known = honoursKeys ? upstream.jobs.find((job) => job.key === key) : undefined;
      const job = known ?? { id: upstream.jobs.length + 1, key, looks: 0, state: 'running' };
      if (known === undefined) upstream.jobs.push(job);
      if (upstream.onCreate) return upstream.onCreate();
      return send(201, { id: job.id });
    }
    if (id === undefined) {
      const key = url.searchParams.get('key');
      return send(200, { jobs: upstream.jobs.filter((job) => job.key === key) });
    }
    const job = upstream.jobs[Number(id) - 1];
    if (job === undefined) return send(404, { error: 'no such job' });
    if (action === 'cancel') {
      if (job.state === 'running') job.state = 'cancelled';
      return send(202, {});
    }
    job.looks += 1;
    if (job.looks >= 2 && job.state === 'running') job.state = 'done';
    send(200, job);
  }

  return upstream;
}
