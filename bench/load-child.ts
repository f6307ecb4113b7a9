// The load generator: clients that each wait for a reply before they ask again, and open listen streams.

import { Client, Pool } from 'undici';
import { answerQuestions, sayReady } from './answering.ts';
import type { LoadAnswer, LoadQuestion, RequestTemplate } from './messages.ts';
import { percentile } from './stats.ts';

type Run = Extract<LoadQuestion, { kind: 'run' }>;
type Open = Extract<LoadQuestion, { kind: 'open' }>;

async function run(question: Run): Promise<LoadAnswer> {
  const { origin, requests, clients, ms, count = Number.POSITIVE_INFINITY, expect, keep = false } = question;
  const pool = new Pool(origin, { connections: clients, pipelining: 1 });
  const times: number[] = [];
  const replies: string[] = [];
  let sent = 0;
  const cpu = process.cpuUsage();
  const started = performance.now();
  const client = async (): Promise<void> => {
    while (sent < count && performance.now() - started < ms) {
      const { path, method, headers, body = null } = requests[sent++ % requests.length] as RequestTemplate;
      const asked = performance.now();
      const reply = await pool.request({ path, method, headers, body });
      const text = await reply.body.text();
      times.push(performance.now() - asked);
      if (!text.includes(expect)) throw new Error(`${method} ${path}: ${reply.statusCode} ${text}`);
      if (keep) replies.push(text);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - started) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  await pool.close();
  return {
    count: times.length,
    perSecond: times.length / seconds,
    p50: percentile(times, 50),
    p99: percentile(times, 99),
    cpuUs: user + system,
    replies,
  };
}

let open: Client[] = [];

async function openStreams({ origin, requests, expect }: Open): Promise<object> {
  const streams = requests.map(
    ({ path, method, headers, body = null }) =>
      new Promise<void>((resolve, reject) => {
        const client = new Client(origin, { bodyTimeout: 0 });
        open.push(client);
        let text = '';
        client.request({ path, method, headers, body }).then(({ body: stream }) => {
          stream.on('data', (chunk: Buffer) => {
            if (text.includes(expect)) return;
            text += chunk.toString();
            if (text.includes(expect)) resolve();
          });
          stream.on('end', () => reject(new Error(`a stream ended: ${text}`)));
          // Closing the client ends its stream with an error, after it has done what it was opened for.
          stream.on('error', reject);
        }, reject);
      }),
  );
  await Promise.all(streams);
  return {};
}

async function closeStreams(): Promise<object> {
  await Promise.all(open.map((client) => client.destroy()));
  open = [];
  return {};
}

answerQuestions<LoadQuestion>(async (question) => {
  switch (question.kind) {
    case 'run':
      return run(question);
    case 'open':
      return openStreams(question);
    case 'close':
      return closeStreams();
  }
});
sayReady();
