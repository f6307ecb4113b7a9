// B-sse: memory of an open listen stream, and whether all of it comes back when the streams are closed.

import { join } from 'node:path';
import type { Block } from './block.ts';
import { startChild } from './children.ts';
import type { Memory } from './messages.ts';
import { print, type Row } from './report.ts';
import { seedStore } from './seed.ts';
import { mcp, startTaskferry } from './taskferry.ts';

const streamCount = 1_000;
const times = 3;
const kib = 1_024;

export const benchStreams: Block = async ({ folder, facts }) => {
  const upstream = await startChild('upstream-child.ts');
  const load = await startChild('load-child.ts');
  const store = join(folder, 'streams.db');
  const hour = 3_600_000;
  const ids = await seedStore({
    file: store,
    tool: 'bench_idle',
    count: streamCount,
    dueInMs: hour,
    intervalMs: hour,
  });
  const server = await startTaskferry({ folder, upstream: upstream.origin, store });
  const requests = ids.map((id) => mcp('subscriptions/listen', { notifications: { taskIds: [id] } }));
  const rows: Row[] = [];
  let closed = await server.memory();
  // The first time also loads and compiles what the later ones share.
  for (let time = 1; time <= times; time++) {
    await load.ask({ kind: 'open', origin: server.origin, requests, expect: 'notifications/tasks' });
    const open = await server.memory();
    await load.ask({ kind: 'close' });
    const before = closed;
    closed = await server.memory();
    rows.push({
      time: `${time}`,
      'RSS KiB each': (open.rss - before.rss) / kib / streamCount,
      'heap KiB each': (open.heap - before.heap) / kib / streamCount,
      'heap left KiB each': (closed.heap - before.heap) / kib / streamCount,
      'handles open': handles(open),
      'handles after': handles(closed),
    });
  }
  print('streams', `${streamCount} listen streams, opened and closed ${times} times`, rows, facts);
  await Promise.all([server, load, upstream].map((child) => child.stop()));
};

export function handles({ handles: kinds }: Memory): number {
  return Object.values(kinds).reduce((sum, count) => sum + count, 0);
}
