// Brings a database to the current schema, and refuses one that is newer or another program's.

import type { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../../errors.ts';
import { applicationId, migrations as currentMigrations } from './schema.ts';

/**
 * Only reads, so that a file that is refused is left as it was.
 * @throws StoreError `store_newer`, or `store_unreadable` for a database that isn't taskferry's.
 */
export function refuseUnfit(db: DatabaseSync, file: string, migrations = currentMigrations): void {
  const version = pragma(db, 'user_version');
  if (version === 0 ? !isEmpty(db) : pragma(db, 'application_id') !== applicationId) {
    throw new StoreError('store_unreadable', `${file} is a database of another program`, {
      fix: 'Name another file with --store sqlite:PATH.',
    });
  }
  if (version > migrations.length) {
    throw new StoreError(
      'store_newer',
      `the store ${file} has schema version ${version}, this taskferry knows up to ${migrations.length}`,
      { fix: 'Run the newer taskferry that wrote it, or start with a new file.' },
    );
  }
}

/**
 * Applies what is missing, all in one transaction.
 * @param migrations entry n brings version n to n + 1; the default is the schema of this release.
 */
export function migrate(db: DatabaseSync, migrations = currentMigrations): void {
  const version = pragma(db, 'user_version');
  if (version === migrations.length) return;
  db.exec('BEGIN EXCLUSIVE');
  try {
    for (const sql of migrations.slice(version)) db.exec(sql);
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function pragma(db: DatabaseSync, name: string): number {
  return db.prepare(`PRAGMA ${name}`).get()?.[name] as number;
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}
