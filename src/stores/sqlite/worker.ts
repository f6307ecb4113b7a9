// The writing thread of the SQLite store: owns the only connections that write.

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { openWriteConnections, type WriteConnections, type WriteOptions } from './database.ts';
import { toFailure } from './failure.ts';
import type { FromWorker, Operation, ToWorker } from './messages.ts';
import { createRounds } from './rounds.ts';

/** Bounds the wait of the first operation in a round for the commit of the last. */
const longestRound = 2_000;

if (parentPort === null) throw new Error('this file runs as a worker thread of the SQLite store');
const port = parentPort;
// Written by writer.ts.
const options = workerData as WriteOptions;

function open(): WriteConnections | undefined {
  try {
    return openWriteConnections(options);
  } catch (error) {
    say({ kind: 'refused', failure: toFailure(error, options.file) });
    return undefined;
  }
}

function say(message: FromWorker): void {
  port.postMessage(message);
}

const connections = open();
if (connections === undefined) port.close();
else serve(connections);

function serve(connections: WriteConnections): void {
  const runRound = createRounds(connections, options.file);

  port.on('message', (message: ToWorker) => {
    let next: ToWorker | undefined = message;
    while (next !== undefined) {
      if (next.kind === 'close') return end();
      const operations: Operation[] = next.operations;
      next = undefined;
      while (operations.length < longestRound) {
        const more = receiveMessageOnPort(port) as { message: ToWorker } | undefined;
        if (more === undefined) break;
        if (more.message.kind === 'close') {
          next = more.message;
          break;
        }
        for (const operation of more.message.operations) operations.push(operation);
      }
      say({ kind: 'results', results: runRound(operations) });
      next ??= (receiveMessageOnPort(port) as { message: ToWorker } | undefined)?.message;
    }
  });
  say({ kind: 'ready' });

  function end(): void {
    // Closing the last connection moves the log into the file; a full disk keeps the log for the next start.
    connections.hint.close();
    connections.durable.close();
    port.close();
  }
}
