// Opens the connections of a store: two that write (in the worker), one that reads (on the main thread).

import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../../errors.ts';
import { sizeOf, wasUnclean } from './file.ts';
import { migrate, refuseUnfit } from './migrate.ts';

export interface WriteOptions {
  file: string;
  /** Bounds the file to this many pages of 4 KiB; writes beyond reject with `store_full`. */
  maxPages?: number | undefined;
  /** Replaces the schema's migrations. */
  migrations?: readonly string[] | undefined;
}

export interface WriteConnections {
  /** On disk when a commit returns. */
  durable: DatabaseSync;
  /** In the log when a commit returns: outlives the process, and the next durable commit takes it to disk. */
  hint: DatabaseSync;
}

/** Up to here a store is searched for damage at every start, which takes some 4 ms for a MiB; a larger one after a crash. */
const searchedBytes = 64 * 1024 * 1024;

/** @throws what SQLite throws, and StoreError when the file is damaged or its schema doesn't fit. */
export function openWriteConnections(options: WriteOptions): WriteConnections {
  const { file, migrations } = options;
  const search = wasUnclean(file) || sizeOf(file) <= searchedBytes;
  const durable = openWriteConnection(options, (db) => {
    refuseUnfit(db, file, migrations);
    configure(db, 'FULL', options);
    if (search) quickCheck(db, file);
    migrate(db, migrations);
  });
  try {
    return { durable, hint: openWriteConnection(options, (db) => configure(db, 'NORMAL', options)) };
  } catch (error) {
    durable.close();
    throw error;
  }
}

export function openReader(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { readOnly: true });
  db.exec('PRAGMA cache_size = -8000');
  return db;
}

function openWriteConnection({ file }: WriteOptions, prepare: (db: DatabaseSync) => void): DatabaseSync {
  // The time-out is for a person's sqlite3 shell on the same file; it only holds up the worker.
  const db = new DatabaseSync(file, { timeout: 2_000 });
  try {
    prepare(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function configure(db: DatabaseSync, synchronous: 'FULL' | 'NORMAL', { maxPages }: WriteOptions): void {
  // The size limit gives the disk space of a burst back after its checkpoint.
  db.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = ${synchronous};
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -8000;
  `);
  if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`);
}

function quickCheck(db: DatabaseSync, file: string): void {
  const faults = db
    .prepare('PRAGMA quick_check(3)')
    .all()
    .map((row) => String(Object.values(row)[0]));
  if (faults.length === 1 && faults[0] === 'ok') return;
  throw new StoreError('store_corrupt', `the store ${file} is damaged: ${faults.join('; ')}`, {
    fix: 'Keep the file, and put a back-up in its place or start with a new file.',
  });
}
