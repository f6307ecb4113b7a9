// The least that a durable group commit needs: rows in, one transaction for all that wait, the count back.

import { DatabaseSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { BareRow } from './bare-store.ts';

const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');
const db = new DatabaseSync(String(workerData));
db.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE tasks (id TEXT PRIMARY KEY, due INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE INDEX due ON tasks (due);
`);
const insert = db.prepare('INSERT INTO tasks VALUES (?, ?, ?)');

port.on('message', (message: BareRow[] | 'close') => {
  let next: BareRow[] | 'close' | undefined = message;
  let count = 0;
  db.exec('BEGIN IMMEDIATE');
  while (next !== undefined && next !== 'close') {
    for (const { id, due, body } of next) insert.run(id, due, body);
    count += next.length;
    next = receiveMessageOnPort(port)?.message as BareRow[] | 'close' | undefined;
  }
  db.exec('COMMIT');
  port.postMessage(count);
  if (next === 'close') {
    db.close();
    port.close();
  }
});
port.postMessage(0);
