// Clients that go away after the garbage of their request was collected: the server must still notice.

import { request as httpRequest } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { modernRequest } from '../helpers/mcp-request.ts';
import { useServer } from './fixture.ts';

const { server, startTask } = useServer();

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Opens a listen stream on a socket of its own; resolves with its end once the first frame is there. */
function listen(taskId: string): Promise<() => void> {
  const { headers, body } = modernRequest('subscriptions/listen', { notifications: { taskIds: [taskId] } });
  return new Promise((resolve, reject) => {
    const request = httpRequest(server().url, { method: 'POST', headers, agent: false }, (response) => {
      response.once('data', () => resolve(() => request.destroy()));
      response.on('error', () => {});
    });
    request.on('error', reject);
    request.end(body);
  });
}

async function openStreams(): Promise<number> {
  const { origin } = new URL(server().url);
  const text = await (await fetch(`${origin}/metrics`)).text();
  return Number(/^taskferry_listen_streams (\d+)/m.exec(text)?.[1]);
}

it('frees listen streams at once when their clients go, however long they were open', async () => {
  const taskId = await startTask('slow_compute', { seconds: 60 });
  const streams = await Promise.all(Array.from({ length: 1_000 }, () => listen(taskId)));
  expect(await openStreams()).toBe(streams.length);
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const leave of streams) leave();
  // Well under the 15 s after which a keep-alive frame would find the client gone.
  await eventually(openStreams, (count) => count === 0, 8_000);
}, 30_000);
