// A small job service to try taskferry against: a real HTTP server in its own process, with jobs that queue, run
// with progress, fail, wait for an approval and can be cancelled.
//
//   node demo/job-service.ts [port]        (default 3738; 0 takes a free one and prints it)
//
//   POST /jobs                {"kind": "render" | "test" | "deploy", "steps": n}   201 {"id", "state"}
//   GET  /jobs/{id}           {"id", "kind", "state", "step", "steps", "note"}
//   GET  /jobs/{id}/report    {"url", "seconds"}   once it is done
//   POST /jobs/{id}/approval  {"approve": true, "comment": ""}
//   POST /jobs/{id}/cancel    202, or 409 when it has ended
//
// States: queued, running, waiting, done, failed, cancelled. A repeated Idempotency-Key gives the first job again.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pathToFileURL } from 'node:url';

type State = 'queued' | 'running' | 'waiting' | 'done' | 'failed' | 'cancelled';

interface Job {
  id: number;
  kind: string;
  state: State;
  step: number;
  steps: number;
  note: string;
  timer: NodeJS.Timeout | undefined;
}

const stepMs = 400;
const maxBodyBytes = 65_536;

/** @returns the port it listens on, and how to stop it. */
export async function startJobService(port: number): Promise<{ port: number; close(): Promise<void> }> {
  const jobs = new Map<number, Job>();
  const byKey = new Map<string, Job>();
  let nextId = 1_000;

  const move = (job: Job): void => {
    job.timer = setTimeout(() => {
      if (job.state === 'queued') Object.assign(job, { state: 'running', note: 'started' });
      else if (job.kind === 'deploy' && job.step === 1 && job.state === 'running') {
        Object.assign(job, { state: 'waiting', note: 'waiting for an approval' });
        return;
      } else if (job.kind === 'test' && job.step >= 2) {
        Object.assign(job, { state: 'failed', note: '2 of 40 tests failed: totals, rounding' });
        return;
      } else if (job.step >= job.steps) {
        Object.assign(job, { state: 'done', note: 'finished' });
        return;
      }
      if (job.state === 'running') job.step = Math.min(job.steps, job.step + 1);
      move(job);
    }, stepMs);
  };

  const create = (body: { kind?: unknown; steps?: unknown }, key: string | undefined): Job | string => {
    const { kind = 'render', steps = 5 } = body;
    if (kind !== 'render' && kind !== 'test' && kind !== 'deploy')
      return 'kind must be render, test or deploy';
    if (typeof steps !== 'number' || steps < 1 || steps > 1_000) return 'steps must be 1 to 1000';
    const known = key === undefined ? undefined : byKey.get(key);
    if (known) return known;
    const job: Job = {
      id: nextId++,
      kind,
      state: 'queued',
      step: 0,
      steps,
      note: 'queued',
      timer: undefined,
    };
    jobs.set(job.id, job);
    if (key !== undefined) byKey.set(key, job);
    move(job);
    return job;
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const send = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const [, collection, id, action] = (request.url ?? '').split('?')[0]?.split('/') ?? [];
    if (collection !== 'jobs') return send(404, { error: 'no such page' });
    if (id === undefined && request.method === 'POST') {
      const job = create(await readJson(request), request.headers['idempotency-key'] as string | undefined);
      return typeof job === 'string' ? send(422, { error: job }) : send(201, shown(job));
    }
    const job = jobs.get(Number(id));
    if (!job) return send(404, { error: `no job ${id}` });
    const ended = job.state === 'done' || job.state === 'failed' || job.state === 'cancelled';
    if (request.method === 'GET' && action === undefined) return send(200, shown(job));
    if (request.method === 'GET' && action === 'report') {
      if (job.state !== 'done') return send(409, { error: 'not done yet' });
      return send(200, { url: `http://127.0.0.1/videos/${job.id}.mp4`, seconds: job.steps * 12 });
    }
    if (request.method === 'POST' && action === 'cancel') {
      if (ended) return send(409, { error: `already ${job.state}` });
      clearTimeout(job.timer);
      Object.assign(job, { state: 'cancelled', note: 'cancelled on request' });
      return send(202, shown(job));
    }
    if (request.method === 'POST' && action === 'approval') {
      if (job.state !== 'waiting') return send(409, { error: 'nothing to approve' });
      const { approve, comment } = await readJson(request);
      if (approve === true) {
        Object.assign(job, {
          state: 'running',
          step: 2,
          note: comment ? `approved: ${comment}` : 'approved',
        });
        move(job);
      } else Object.assign(job, { state: 'failed', note: 'the deployment was rejected' });
      return send(200, shown(job));
    }
    return send(405, { error: 'no such operation' });
  };

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: String(error) }));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const job of jobs.values()) clearTimeout(job.timer);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function shown({ timer: _, ...job }: Job): object {
  return job;
}

async function readJson(request: IncomingMessage): Promise<{ [field: string]: unknown }> {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > maxBodyBytes) throw new Error('the body is too large');
  }
  return text === '' ? {} : JSON.parse(text);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const service = await startJobService(Number(process.argv[2] ?? 3738));
  console.log(`job service on http://127.0.0.1:${service.port}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void service.close());
}
