// The job service that everything is measured against, as lean as a node:http server can be.
//
//   POST /jobs        201 {"id"}
//   GET  /jobs/{id}   a running job
//   GET  /ended/{id}  the same job, done
//   POST /fixed       a reply that the runner chose

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerQuestions, sayReady } from './answering.ts';
import type { Looks, UpstreamQuestion } from './messages.ts';

let nextId = 1;
let looks = 0;
let moving = false;
let fixed = '{}';

const server = createServer((request, response) => {
  const { method, url = '/' } = request;
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const send = (status: number, body: string): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    };
    if (url === '/fixed') {
      // A server that answers a call has read it.
      JSON.parse(Buffer.concat(chunks).toString());
      return send(200, fixed);
    }
    if (method === 'POST') {
      JSON.parse(Buffer.concat(chunks).toString());
      return send(201, JSON.stringify({ id: nextId++ }));
    }
    looks++;
    const [, kind, id] = url.split('/');
    const job = {
      id: Number(id),
      state: kind === 'ended' ? 'done' : 'running',
      step: moving ? looks : 3,
      steps: 40,
      note: 'compiling',
      links: { self: url, log: `${url}/log` },
    };
    send(200, JSON.stringify(job));
  });
});

answerQuestions<UpstreamQuestion>(async (question) => {
  switch (question.kind) {
    case 'mode':
      moving = question.moving;
      return {};
    case 'fixed':
      fixed = question.body;
      return {};
    case 'looks':
      return { looks, at: performance.now() } satisfies Looks;
  }
});

server.listen(0, '127.0.0.1', () => sayReady(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
