// The bare group-commit loop that the store is compared with: node:sqlite in a worker, the same durability.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export interface BareRow {
  id: string;
  due: number;
  body: string;
}

export interface BareStore {
  /** Resolves when the row is on disk. */
  insert(row: BareRow): Promise<void>;
  close(): Promise<void>;
}

export async function openBareStore(file: string): Promise<BareStore> {
  const worker = new Worker(new URL('./bare-store-worker.ts', import.meta.url), { workerData: file });
  await once(worker, 'message');
  const waiting: (() => void)[] = [];
  let batch: BareRow[] = [];
  worker.on('message', (count: number) => {
    for (const resolve of waiting.splice(0, count)) resolve();
  });
  return {
    insert: (row) =>
      new Promise((resolve) => {
        waiting.push(resolve);
        if (batch.push(row) > 1) return;
        queueMicrotask(() => {
          worker.postMessage(batch);
          batch = [];
        });
      }),
    async close() {
      const exited = once(worker, 'exit');
      worker.postMessage('close');
      await exited;
    },
  };
}
