// Every query of the SQLite store is answered by an index: none walks the tasks or the schedule.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it, onTestFinished } from 'vitest';
import { migrate } from '../../src/stores/sqlite/migrate.ts';
import { sql } from '../../src/stores/sqlite/operations.ts';
import { queries } from '../../src/stores/sqlite/reader.ts';
import { tempDir } from '../helpers/temp-dir.ts';

function plan(query: string): string[] {
  const db = new DatabaseSync(join(tempDir(), 'tasks.db'));
  onTestFinished(() => db.close());
  migrate(db);
  return db
    .prepare(`EXPLAIN QUERY PLAN ${query}`)
    .all()
    .map(({ detail }) => String(detail));
}

/** Steps that read a whole table or index, or sort; what is named has a handful of rows. */
const slow = (steps: string[]): string[] =>
  steps.filter(
    (step) =>
      /SCAN|TEMP B-TREE/.test(step) &&
      !/SCAN (names|adapters|tally|CONSTANT|schedule USING INDEX schedule_leased)/.test(step),
  );

it.each(Object.entries(queries).filter(([name]) => name !== 'counts'))(
  'reads %s by an index',
  (_name, query) => {
    expect(slow(plan(query))).toEqual([]);
  },
);

it('counts tasks without touching them', () => {
  expect(plan(queries.counts).join('\n')).not.toMatch(/tasks(?!\.)\b.*USING|SCAN tasks|SCAN schedule/);
});

// pullForward walks the schedule, once when the clock was set back.
it.each(Object.entries(sql).filter(([name]) => name !== 'pullForward'))(
  'writes %s by an index',
  (_name, statement) => {
    expect(slow(plan(statement))).toEqual([]);
  },
);

it('finds due tasks in their order without sorting', () => {
  expect(plan(queries.dueBefore)).toEqual([
    'SEARCH schedule USING INDEX schedule_due (adapter=? AND due_at<?)',
  ]);
});
