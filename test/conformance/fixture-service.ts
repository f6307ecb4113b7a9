// The job service behind the conformance adapters: jobs of a given length and end, some of which wait for answers.
//
//   GET  /greet?name=…         {"text"}
//   GET  /broken               500
//   POST /jobs                 {"seconds", "end": "done" | "failed" | "broken", "questions": [key], "text"}
//   GET  /jobs/{id}            {"id", "state", "waiting": [key], "text", "answers": […]}
//   POST /jobs/{id}/answers    {"key", …}; shown as "answers" of the job
//   POST /jobs/{id}/cancel

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Job {
  id: number;
  endsAt: number;
  end: string;
  text: string;
  waiting: string[];
  answers: Body[];
  cancelled: boolean;
}

export async function startFixtureService(): Promise<{ url: string; close(): Promise<void> }> {
  const jobs: Job[] = [];
  const server = createServer((request, response) => {
    void handle(jobs, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function handle(jobs: Job[], request: IncomingMessage, response: ServerResponse): Promise<void> {
  const send = (status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  const url = new URL(request.url ?? '/', 'http://fixture');
  const [, collection, id, action] = url.pathname.split('/');
  if (collection === 'greet') return send(200, { text: `Hello, ${url.searchParams.get('name')}!` });
  if (collection === 'broken')
    return send(500, { error: 'This tool intentionally returns an error for testing' });
  if (collection !== 'jobs') return send(404, { error: 'no such page' });
  const body = request.method === 'POST' ? await readJson(request) : {};
  if (id === undefined) {
    const { seconds = 0, end = 'done', questions = [], text = '' } = body;
    const job: Job = {
      id: jobs.length,
      endsAt: Date.now() + seconds * 1_000,
      end,
      text,
      waiting: [...questions],
      answers: [],
      cancelled: false,
    };
    jobs.push(job);
    return send(201, shown(job));
  }
  const job = jobs[Number(id)];
  if (job === undefined) return send(404, { error: 'no such job' });
  if (action === 'cancel') job.cancelled = true;
  if (action === 'answers') {
    job.waiting = job.waiting.filter((key) => key !== body.key);
    job.answers.push(body);
  }
  send(200, shown(job));
}

function shown(job: Job): object {
  const { id, text, waiting, answers } = job;
  return { id, text, waiting, answers, state: stateOf(job) };
}

function stateOf(job: Job): string {
  if (job.cancelled) return 'cancelled';
  if (job.waiting.length > 0) return 'waiting';
  return Date.now() < job.endsAt ? 'running' : job.end;
}

interface Body {
  seconds?: number;
  end?: string;
  questions?: string[];
  text?: string;
  key?: string;
}

async function readJson(request: IncomingMessage): Promise<Body> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text === '' ? {} : JSON.parse(text);
}
