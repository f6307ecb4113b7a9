// The main thread's end of the writing thread: sends operations, settles their promises, notices a crash.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type StoreError, sentenceOf } from '../../errors.ts';
import type { WriteOptions } from './database.ts';
import { toStoreError } from './failure.ts';
import type { FromWorker, Operation, Result, ToWorker, WriteAnswer } from './messages.ts';

export interface Writer {
  /** Resolves after the commit. @throws StoreError */
  write(operation: Operation): Promise<WriteAnswer>;
  /** Waits for what was sent, then ends the thread. */
  close(): Promise<void>;
}

interface Waiting {
  resolve(answer: WriteAnswer): void;
  reject(error: StoreError): void;
}

/** @throws StoreError when the database can't be opened. */
export async function openWriter(
  options: WriteOptions,
  onCrash: (error: StoreError) => void,
): Promise<Writer> {
  // From src it is worker.ts, run by type stripping; from dist it is worker.js.
  const worker = new Worker(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), {
    workerData: options,
    name: 'taskferry-store',
  });
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  /** Operations without an answer, oldest first: the thread answers in order. */
  const waiting: Waiting[] = [];
  /** Operations of this turn of the event loop, not sent yet. */
  let batch: Operation[] = [];
  let crash: StoreError | undefined;
  let closing = false;

  const crashed = (reason: string): void => {
    if (crash !== undefined || (closing && waiting.length === 0)) return;
    crash = toStoreError({
      code: 'store_failed',
      message: `the writing thread of the store ${options.file} ended: ${reason}`,
      fix: 'Restart taskferry; nothing that was acknowledged is lost.',
    });
    for (const { reject } of waiting.splice(0)) reject(crash);
    onCrash(crash);
  };

  const settle = (results: Result[]): void => {
    const settled = waiting.splice(0, results.length);
    for (const [i, result] of results.entries()) {
      if (result.ok) settled[i]?.resolve(result.answer);
      else settled[i]?.reject(toStoreError(result.failure));
    }
  };

  const flush = (): void => {
    if (batch.length === 0) return;
    const operations = batch;
    batch = [];
    worker.postMessage({ kind: 'write', operations } satisfies ToWorker);
  };

  await new Promise<void>((resolve, reject) => {
    worker.on('error', (error) => {
      crashed(sentenceOf(error));
      if (crash !== undefined) reject(crash);
    });
    worker.on('exit', (code) => {
      crashed(`exit code ${code}`);
      if (crash !== undefined) reject(crash);
    });
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'ready') resolve();
      else if (message.kind === 'refused') {
        closing = true;
        void exited.then(() => reject(toStoreError(message.failure)));
      } else settle(message.results);
    });
  });

  return {
    write(operation) {
      if (crash !== undefined) return Promise.reject(crash);
      return new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        // One message for all that is written in this turn: they will share a commit.
        if (batch.push(operation) === 1) queueMicrotask(flush);
      });
    },
    async close() {
      flush();
      closing = true;
      worker.postMessage({ kind: 'close' } satisfies ToWorker);
      await exited;
    },
  };
}
