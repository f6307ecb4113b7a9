// Random sequences of operations leave the in-memory and the SQLite store with the same answers.

import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { createMemoryStore } from '../../src/stores/memory.ts';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import type { Store } from '../../src/stores/store.ts';
import type { Stage, Task } from '../../src/tasks/task.ts';
import { fixtureTime, makeEntry, makeTask } from '../helpers/task-fixture.ts';
import { tempDir } from '../helpers/temp-dir.ts';

/** Few of everything, so that sequences meet the same tasks often. */
const task = fc.nat(5);
const caller = fc.constantFrom('local', 'token:a');
const adapter = fc.constantFrom('a', 'b');
const time = fc.integer({ min: 0, max: 30 });
const stage = fc.constantFrom<Stage>('creating', 'following', 'finishing', 'ended');
const json = fc.dictionary(
  fc.string({ maxLength: 3 }).filter((key) => key !== '__proto__'),
  fc.oneof(
    fc.bigInt(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.string(),
    fc.constantFrom(null, '#1', '##'),
  ),
  { maxKeys: 3 },
);

const operation = fc.oneof(
  fc.record({
    kind: fc.constant('insert' as const),
    task,
    caller,
    adapter,
    stage,
    startKey: fc.constantFrom('k', undefined),
    digest: fc.constantFrom('x', 'y'),
    due: time,
    lease: time,
    expires: time,
    args: json,
  }),
  fc.record({
    kind: fc.constant('save' as const),
    task,
    caller,
    stage,
    version: fc.integer({ min: 1, max: 4 }),
    schedule: fc.option(fc.option(time), { nil: undefined }),
    dueBy: fc.option(time, { nil: undefined }),
    outcome: fc.constantFrom(undefined, '{"id":9007199254740993}'),
    expires: time,
    job: json,
  }),
  fc.record({ kind: fc.constant('remove' as const), task, caller }),
  fc.record({
    kind: fc.constant('reschedule' as const),
    task,
    caller,
    due: time,
    version: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({ kind: fc.constant('lease' as const), task, caller, now: time, until: time }),
  fc.record({ kind: fc.constant('releaseLeases' as const) }),
  fc.record({ kind: fc.constant('spread' as const), adapter, now: time, window: fc.nat(20) }),
  fc.record({ kind: fc.constant('purge' as const), now: time, limit: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constant('setting' as const), value: fc.string() }),
);
type Step = typeof operation extends fc.Arbitrary<infer T> ? T : never;

const idOf = (index: number, run: string): string => `${run}-${index}`;

async function apply(store: Store, step: Step, run: string): Promise<unknown> {
  const at = (offset: number): number => fixtureTime + offset;
  const known = (differs: Partial<Task>): Task =>
    makeTask({
      key: 'key',
      ...differs,
      adapter: `${run}${differs.adapter ?? 'a'}`,
      digest: `${run}${differs.digest ?? 'x'}`,
    });
  switch (step.kind) {
    case 'insert': {
      const { stage, startKey, caller, adapter, digest, args } = step;
      const id = idOf(step.task, run);
      const record = known({
        id,
        caller,
        adapter,
        digest,
        stage,
        startKey,
        args,
        expiresAt: at(step.expires),
      });
      const entry = makeEntry(record, {
        schedule: { dueAt: at(step.due), intervalMs: 5 },
        leaseUntil: step.lease === 0 ? 0 : at(step.lease),
      });
      return store.insert(entry).catch((error: Error) => error.name);
    }
    case 'save': {
      const { stage, caller, version, job, dueBy, outcome, schedule } = step;
      const id = idOf(step.task, run);
      const record = known({ id, caller, stage, version, job, expiresAt: at(step.expires) });
      return store.save({
        task: record,
        durable: false,
        ...(schedule === undefined
          ? {}
          : { schedule: schedule === null ? null : { dueAt: at(schedule), intervalMs: 7 } }),
        ...(dueBy === undefined ? {} : { dueBy: at(dueBy) }),
        ...(outcome === undefined ? {} : { outcome }),
      });
    }
    case 'remove':
      return store.remove({ caller: step.caller, id: idOf(step.task, run) });
    case 'reschedule': {
      const ref = { caller: step.caller, id: idOf(step.task, run) };
      return store.reschedule(ref, { dueAt: at(step.due), intervalMs: 9 }, step.version);
    }
    case 'lease':
      return store.lease({ caller: step.caller, id: idOf(step.task, run) }, at(step.now), at(step.until));
    case 'releaseLeases':
      return store.releaseLeases();
    case 'spread':
      return store.spread(`${run}${step.adapter}`, at(step.now), step.window);
    case 'purge':
      return store.purge(at(step.now), step.limit);
    case 'setting':
      return store.setting(run, () => step.value);
  }
}

async function observe(store: Store, run: string): Promise<unknown> {
  const answers: unknown[] = [];
  for (const caller of ['local', 'token:a']) {
    for (let index = 0; index <= 5; index++) answers.push(await store.get({ caller, id: idOf(index, run) }));
  }
  for (const name of ['a', 'b']) {
    const adapter = run + name;
    answers.push(await store.nextDue(adapter));
    for (const offset of [0, 10, 30, 60])
      answers.push(await store.dueBefore(adapter, fixtureTime + offset, 4));
  }
  answers.push(await store.scheduledAdapters(), await store.counts(), await store.adapterDigests());
  return answers;
}

it('agrees on every answer after any sequence of operations', async () => {
  const sqlite = await openSqliteStore({ path: join(tempDir(), 'tasks.db') });
  onTestFinished(() => sqlite.close());
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 30 }), async (steps) => {
      const run = `run${runs++}`;
      const memory = createMemoryStore();
      for (const step of steps) {
        expect(await apply(sqlite, step, run)).toStrictEqual(await apply(memory, step, run));
      }
      expect(await observe(sqlite, run)).toStrictEqual(await observe(memory, run));
      // One file serves all runs: an opening for each would take longer than all the rest.
      while ((await sqlite.purge(Number.MAX_SAFE_INTEGER, 1_000)) > 0);
    }),
    { numRuns: 150 },
  );
}, 30_000);
