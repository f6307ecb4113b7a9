// What every store must do: one test for each promise that the port's comments make.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RecordError, type Save, type Store, unendedGrace } from '../../src/stores/store.ts';
import type { Task, TaskRef } from '../../src/tasks/task.ts';
import { makeEntry, makeTask, nextVersion, fixtureTime as now } from '../helpers/task-fixture.ts';

export interface StoreKind {
  /** Opens the store that lives in `directory`. */
  open(directory: string): Promise<Store>;
  /** Declares that a store opened in the same directory holds what the closed one held. */
  outlivesClose: boolean;
}

const refOf = ({ caller, id }: TaskRef): TaskRef => ({ caller, id });

/** A task in which every optional field is filled, with values that JSON alone would spoil. */
function fullTask(): Task {
  return makeTask({
    args: {
      id: 9_007_199_254_740_993n,
      list: [1n, 1.5, 3, -0, 1e300, null, true, 'x', '#1', '##', '#', -5n],
      deep: { a: { b: [] } },
    },
    confirm: { sure: { count: 18_446_744_073_709_551_617n } },
    job: { '#key': '#7', run: 123_456_789_012_345_678_901_234_567_890n, ratio: 2, emoji: '😀 \u0000 ż' },
    startKey: 'key-1',
    create: { step: 2, sentAt: now - 5, doubt: { since: now, reason: 'timed out', looks: 2 } },
    questions: [
      {
        key: 'ok-1',
        stem: 'ok_7',
        ask: 'ok',
        item: { id: 2n ** 65n, name: '#a' },
        message: 'Go on?',
        schema: { type: 'object', max: 2n ** 60n },
        fingerprint: 'f',
      },
    ],
    answers: [
      {
        key: 'ok-0',
        stem: 'ok',
        ask: 'ok',
        item: undefined,
        action: 'accept',
        content: { n: 2n ** 70n, half: 0.5 },
        fingerprint: 'e',
      },
    ],
    cancel: { requestedAt: now, state: 'sent', sentAt: now + 1, escalated: undefined },
    phase: 'input_required',
  });
}

export function describeStore(name: string, kind: StoreKind): void {
  describe(name, () => {
    let directory: string;
    let store: Store;
    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), 'taskferry-store-'));
      store = await kind.open(directory);
    });
    afterEach(async () => {
      await store.close();
      await rm(directory, { recursive: true });
    });

    const insert = async (...args: Parameters<typeof makeEntry>): Promise<Task> => {
      const entry = makeEntry(...args);
      expect(await store.insert(entry)).toEqual({ kind: 'inserted' });
      return entry.task;
    };
    const due = (time = now, limit = 10, adapter = 'builds') => store.dueBefore(adapter, time, limit);

    describe('records', () => {
      it('gives back a task with all its types, however large its numbers', async () => {
        const task = fullTask();
        await store.insert(makeEntry(task));
        const stored = await store.get(task);
        expect(stored?.task).toStrictEqual(task);
        expect(stored?.schedule).toEqual({ dueAt: now, intervalMs: 5_000 });
        expect(stored?.outcome).toBeUndefined();
        expect(typeof stored?.task.version).toBe('number');
        expect(typeof stored?.task.create.doubt?.looks).toBe('number');
      });

      it('keeps the deepest arguments that callers may send', async () => {
        let deep: Task['args'] = { end: 1n };
        for (let level = 1; level < 64; level++) deep = { deep };
        const task = await insert({ args: deep });
        expect((await store.get(task))?.task.args).toEqual(deep);
      });

      it('refuses what it could not give back, and stores it whole otherwise', async () => {
        for (const levels of [65, 78, 79, 80, 81, 100, 2_000, 20_000]) {
          let args: Task['args'] = { end: 1n };
          for (let level = 1; level < levels; level++) args = { deep: args };
          const entry = makeEntry({ args });
          const outcome = await store.insert(entry).catch((error: unknown) => error);
          if (levels >= 100) expect(outcome).toBeInstanceOf(RecordError);
          if (outcome instanceof RecordError) {
            expect(outcome.code).toBe('store_failed');
            expect(outcome.message).toMatch(/can't be stored: nested deeper than \d+ levels/);
            expect(await store.get(entry.task)).toBeUndefined();
          } else expect((await store.get(entry.task))?.task.args).toEqual(args);
        }
        const task = await insert();
        let job: Task['job'] = {};
        for (let level = 1; level < 5_000; level++) job = { deep: job };
        const save = store.save({ task: nextVersion(task, { job }), durable: true });
        await expect(save).rejects.toBeInstanceOf(RecordError);
        expect((await store.get(task))?.task).toEqual(task);
      });

      it('gives a copy of a record it read the same arguments', async () => {
        const task = await insert({ args: { id: 7n }, confirm: { sure: true } });
        const copy = { ...(await store.get(task))?.task };
        expect(copy).toStrictEqual(task);
        const value = (field: string): unknown => Object.getOwnPropertyDescriptor(copy, field)?.value;
        expect([value('args'), value('confirm')]).toEqual([{ id: 7n }, { sure: true }]);
      });

      it('is not changed by what a caller does to a record that it read', async () => {
        const task = await insert({ job: { id: 1n } });
        const read = await store.get(task);
        if (read === undefined) throw new Error('the task is gone');
        read.task.job.id = 2n;
        read.task.args.branch = 'other';
        expect((await store.get(task))?.task).toEqual(task);
      });

      it('shows a foreign task exactly as an unknown one', async () => {
        const task = await insert({ caller: 'token:a' });
        const foreign = { ...task, caller: 'token:b' };
        expect(await store.get(foreign)).toBeUndefined();
        expect(await store.save({ task: nextVersion(foreign), durable: true })).toBe(false);
        expect(await store.lease(foreign, now, now + 1)).toBe(false);
        expect(await store.reschedule(foreign, { dueAt: 0, intervalMs: 1 }, 1)).toBe(false);
        await store.remove(foreign);
        expect((await store.get(task))?.task).toEqual(task);
        expect((await store.get(task))?.schedule?.dueAt).toBe(now);
      });

      it('refuses a second task with the same caller and id', async () => {
        const task = await insert();
        await expect(store.insert(makeEntry({ ...task, message: 'other' }))).rejects.toMatchObject({
          name: 'StoreError',
        });
        expect((await store.get(task))?.task.message).toBe('started');
      });

      it('removes a task with its schedule, and is content when there is none', async () => {
        const task = await insert();
        await store.remove(task);
        await store.remove(task);
        expect(await store.get(task)).toBeUndefined();
        expect(await due()).toEqual([]);
        expect(await store.nextDue('builds')).toBeUndefined();
        expect(await store.save({ task: nextVersion(task), durable: true })).toBe(false);
      });
    });

    describe('repeated starts', () => {
      it('gives the existing task to a start with the same caller, adapter, tool and key', async () => {
        const task = await insert({ startKey: 'k' });
        const again = await store.insert(makeEntry({ startKey: 'k' }));
        expect(again).toMatchObject({ kind: 'exists', existing: { schedule: { dueAt: now } } });
        expect(again.kind === 'exists' && again.existing.task).toEqual(task);
      });

      it.each([
        ['caller', { caller: 'token:b' }],
        ['adapter', { adapter: 'other' }],
        ['tool', { tool: 'other' }],
        ['key', { startKey: 'other' }],
      ])('takes a start with another %s for a new one', async (_what, differs) => {
        await insert({ startKey: 'k' });
        await insert({ startKey: 'k', ...differs });
      });

      it('lets one of many concurrent starts win, and gives its task to the others', async () => {
        const entries = Array.from({ length: 20 }, () => makeEntry({ startKey: 'k' }));
        const outcomes = await Promise.all(entries.map((entry) => store.insert(entry)));
        const ids = outcomes.map((outcome, i) =>
          outcome.kind === 'exists' ? outcome.existing.task.id : entries[i]?.task.id,
        );
        expect(outcomes.filter(({ kind }) => kind === 'inserted')).toHaveLength(1);
        expect(new Set(ids).size).toBe(1);
      });

      it('frees the key with its task', async () => {
        await store.remove(await insert({ startKey: 'k' }));
        await insert({ startKey: 'k' });
      });
    });

    describe('saves', () => {
      it('replaces the record when the version follows the stored one', async () => {
        const task = await insert();
        const next = nextVersion(task, { message: 'running', job: { id: 2n ** 80n }, progress: undefined });
        expect(await store.save({ task: next, durable: false })).toBe(true);
        expect((await store.get(task))?.task).toEqual(next);
      });

      it('keeps the arguments and confirmed answers that were inserted', async () => {
        const task = await insert({ args: { id: 7n }, confirm: { sure: true } });
        await store.save({
          task: nextVersion(task, { args: {}, confirm: {}, message: 'on' }),
          durable: true,
        });
        expect((await store.get(task))?.task).toEqual({ ...task, version: 2, message: 'on' });
      });

      it.each([0, 1, 3])('refuses version %i over a stored 1', async (version) => {
        const task = await insert();
        expect(await store.save({ task: { ...task, version, message: 'late' }, durable: true })).toBe(false);
        expect((await store.get(task))?.task).toEqual(task);
      });

      it('lets exactly one of many concurrent saves win', async () => {
        const task = await insert();
        const saves = Array.from({ length: 20 }, (_, i) =>
          store.save({ task: nextVersion(task, { message: `writer ${i}` }), durable: i % 2 === 0 }),
        );
        const won = (await Promise.all(saves)).flatMap((saved, i) => (saved ? [`writer ${i}`] : []));
        expect(won).toHaveLength(1);
        expect((await store.get(task))?.task).toMatchObject({ version: 2, message: won[0] });
      });

      it('leaves schedule and lease alone when the save names none', async () => {
        const task = await insert({}, { leaseUntil: now + 100 });
        await store.save({ task: nextVersion(task), durable: false });
        expect((await store.get(task))?.schedule).toEqual({ dueAt: now, intervalMs: 5_000 });
        expect(await due(now + 99)).toEqual([]);
      });

      it('sets a new schedule and ends the lease', async () => {
        const task = await insert({}, { leaseUntil: now + 100_000 });
        const schedule = { dueAt: now + 10, intervalMs: 7_500 };
        await store.save({ task: nextVersion(task), schedule, durable: true });
        expect((await store.get(task))?.schedule).toEqual(schedule);
        expect(await due(now + 10)).toEqual([refOf(task)]);
      });

      it('changes nothing in the schedule when the save loses', async () => {
        const task = await insert();
        const schedule = { dueAt: now + 1_000, intervalMs: 1 };
        await store.save({ task: { ...task, version: 7 }, schedule, durable: true });
        expect((await store.get(task))?.schedule).toEqual({ dueAt: now, intervalMs: 5_000 });
      });

      it('schedules a task again that had no schedule', async () => {
        const task = await insert();
        const second = nextVersion(task);
        await store.save({ task: second, schedule: null, durable: true });
        expect((await store.get(task))?.schedule).toBeUndefined();
        expect(await store.reschedule(task, { dueAt: now, intervalMs: 1 }, 2)).toBe(false);
        const schedule = { dueAt: now + 3, intervalMs: 2_000 };
        await store.save({ task: nextVersion(second), schedule, durable: true });
        expect((await store.get(task))?.schedule).toEqual(schedule);
        expect(await store.nextDue('builds')).toBe(now + 3);
      });

      it('brings the next look forward with dueBy, never back, and keeps the lease', async () => {
        const task = await insert(
          {},
          { schedule: { dueAt: now + 500, intervalMs: 9 }, leaseUntil: now + 50 },
        );
        const second = nextVersion(task);
        await store.save({ task: second, dueBy: now + 900, durable: true });
        expect((await store.get(task))?.schedule).toEqual({ dueAt: now + 500, intervalMs: 9 });
        await store.save({ task: nextVersion(second), dueBy: now + 10, durable: true });
        expect((await store.get(task))?.schedule).toEqual({ dueAt: now + 10, intervalMs: 9 });
        expect(await due(now + 49)).toEqual([]);
        expect(await due(now + 50)).toEqual([refOf(task)]);
      });

      it('keeps the outcome text of an ended task to the byte, without a schedule', async () => {
        const task = await insert();
        const outcome = `{"id":123456789012345678901234567890,"text":"😀\\u0000 ${'x'.repeat(300_000)}"}`;
        const ended = nextVersion(task, { stage: 'ended', ending: 'succeeded' });
        await store.save({ task: ended, outcome, durable: true });
        const stored = await store.get(task);
        expect(stored?.outcome).toBe(outcome);
        expect(stored?.schedule).toBeUndefined();
        expect(await store.scheduledAdapters()).toEqual([]);
        await store.save({ task: nextVersion(ended), durable: true });
        expect((await store.get(task))?.outcome).toBe(outcome);
      });

      it('keeps fractions of milliseconds out of the schedule', async () => {
        const task = await insert({}, { schedule: { dueAt: now + 0.4, intervalMs: 25_312.5 } });
        expect((await store.get(task))?.schedule).toEqual({ dueAt: now, intervalMs: 25_313 });
        await store.reschedule(task, { dueAt: now + 1.6, intervalMs: 1.2 }, 1);
        expect((await store.get(task))?.schedule).toEqual({ dueAt: now + 2, intervalMs: 1 });
      });
    });

    describe('the schedule', () => {
      it('moves the next look without touching the record, and ends the lease', async () => {
        const task = await insert({}, { leaseUntil: now + 100_000 });
        expect(await store.reschedule(task, { dueAt: now + 5, intervalMs: 6_000 }, 1)).toBe(true);
        const stored = await store.get(task);
        expect(stored?.task).toEqual(task);
        expect(stored?.schedule).toEqual({ dueAt: now + 5, intervalMs: 6_000 });
        expect(await due(now + 5)).toEqual([refOf(task)]);
      });

      it('refuses to reschedule a record that changed meanwhile', async () => {
        const task = await insert({}, { leaseUntil: now + 100_000 });
        await store.save({ task: nextVersion(task), durable: true });
        expect(await store.reschedule(task, { dueAt: now + 5, intervalMs: 1 }, 1)).toBe(false);
        expect((await store.get(task))?.schedule).toEqual({ dueAt: now, intervalMs: 5_000 });
        expect(await due(now + 99_999)).toEqual([]);
      });

      it('lists due tasks of one adapter, most overdue first, up to the limit', async () => {
        const at = (dueAt: number, adapter = 'builds') =>
          insert({ adapter }, { schedule: { dueAt, intervalMs: 1 } });
        const third = await at(now - 10);
        const first = await at(now - 30);
        const second = await at(now - 20);
        const fourth = await at(now);
        await at(now + 1);
        await at(now - 99, 'other');
        expect(await due()).toEqual([first, second, third, fourth].map(refOf));
        expect(await due(now, 2)).toEqual([first, second].map(refOf));
        expect(await due(now - 100)).toEqual([]);
      });

      it('gives a lease to exactly one of many', async () => {
        const task = await insert();
        const tries = Array.from({ length: 20 }, () => store.lease(task, now, now + 1_000));
        expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
        expect(await due(now + 999)).toEqual([]);
      });

      it('lets a lease be taken when the last one is over, not before', async () => {
        const task = await insert();
        await store.lease(task, now, now + 100);
        expect(await store.lease(task, now + 99, now + 300)).toBe(false);
        expect(await due(now + 100)).toEqual([refOf(task)]);
        expect(await store.lease(task, now + 100, now + 300)).toBe(true);
      });

      it('keeps the inserter’s lease until its end', async () => {
        const task = await insert({ stage: 'creating' }, { leaseUntil: now + 60_000 });
        expect(await due(now + 59_999)).toEqual([]);
        expect(await store.lease(task, now + 59_999, now + 90_000)).toBe(false);
        expect(await store.lease(task, now + 60_000, now + 90_000)).toBe(true);
      });

      it('never leases a task without a schedule', async () => {
        const task = await insert();
        await store.save({ task: nextVersion(task), schedule: null, durable: true });
        expect(await store.lease(task, now, now + 1)).toBe(false);
        expect(await store.lease(makeTask(), now, now + 1)).toBe(false);
      });

      it('says when the next task of an adapter is due, counting a lease’s end as due', async () => {
        expect(await store.nextDue('builds')).toBeUndefined();
        const later = await insert({}, { schedule: { dueAt: now + 500, intervalMs: 1 } });
        const sooner = await insert({}, { schedule: { dueAt: now + 100, intervalMs: 1 } });
        await insert({ adapter: 'other' }, { schedule: { dueAt: now, intervalMs: 1 } });
        expect(await store.nextDue('builds')).toBe(now + 100);
        await store.lease(sooner, now, now + 300);
        expect(await store.nextDue('builds')).toBe(now + 300);
        await store.lease(later, now, now + 200);
        expect(await store.nextDue('builds')).toBe(now + 300);
        await store.lease(sooner, now + 300, now + 900);
        expect(await store.nextDue('builds')).toBe(now + 500);
      });

      it('names the adapters that have scheduled tasks', async () => {
        expect(await store.scheduledAdapters()).toEqual([]);
        const task = await insert({ adapter: 'b' });
        await insert({ adapter: 'a' });
        await insert({ adapter: 'c' });
        await insert({ adapter: 'c' });
        expect((await store.scheduledAdapters()).sort()).toEqual(['a', 'b', 'c']);
        await store.save({ task: nextVersion(task), schedule: null, durable: true });
        expect((await store.scheduledAdapters()).sort()).toEqual(['a', 'c']);
      });

      it('ends all leases when told that their holders are gone', async () => {
        const held = await insert({}, { leaseUntil: now + 100_000 });
        const leased = await insert({ adapter: 'other' });
        await store.lease(leased, now, now + 100_000);
        await store.releaseLeases();
        expect(await due()).toEqual([refOf(held)]);
        expect(await due(now, 10, 'other')).toEqual([refOf(leased)]);
        expect(await store.nextDue('builds')).toBe(now);
      });

      it('keeps an ended task scheduled only when its last save says so', async () => {
        const cleaned = await insert({}, { schedule: { dueAt: now, intervalMs: 3 } });
        const plain = await insert({}, { schedule: { dueAt: now, intervalMs: 3 } });
        const end = (task: Task, more: Partial<Save>) =>
          store.save({ task: nextVersion(task, { stage: 'ended' }), outcome: '{}', durable: true, ...more });
        await end(cleaned, { schedule: { dueAt: now + 5, intervalMs: 3 } });
        await end(plain, {});
        expect((await store.get(cleaned))?.schedule?.dueAt).toBe(now + 5);
        expect((await store.get(plain))?.schedule).toBeUndefined();
        expect(await due(now + 5)).toEqual([refOf(cleaned)]);
      });

      it('finds tasks past their deadline whatever their adapter and schedule, but for leased ones', async () => {
        const later = { schedule: { dueAt: now + 500, intervalMs: 3 } };
        const second = await insert({ deadline: now - 1 }, later);
        const first = await insert({ deadline: now - 2, adapter: 'other' }, later);
        await insert({ deadline: now + 1 });
        await insert({ deadline: now - 3 }, { leaseUntil: now + 1 });
        expect(await store.pastDeadline(now, 10)).toEqual([refOf(first), refOf(second)]);
        expect(await store.pastDeadline(now, 1)).toEqual([refOf(first)]);
        await store.reschedule(first, { dueAt: now + 900, intervalMs: 3 }, first.version);
        await store.save({
          task: nextVersion(second, { deadline: now + 7 }),
          schedule: { dueAt: now, intervalMs: 3 },
          durable: true,
        });
        expect(await store.pastDeadline(now, 10)).toEqual([refOf(first)]);
        await store.save({ task: nextVersion(first, { stage: 'ended' }), outcome: '{}', durable: true });
        expect(await store.pastDeadline(now, 10)).toEqual([]);
      });

      it('brings forward what a clock that was set back has left far ahead', async () => {
        const far = await insert({}, { schedule: { dueAt: now + 3_600_000, intervalMs: 5_000 } });
        const near = await insert({}, { schedule: { dueAt: now + 60_000, intervalMs: 5_000 } });
        expect(await store.pullForward(now)).toBe(1);
        expect((await store.get(far))?.schedule).toEqual({ dueAt: now, intervalMs: 5_000 });
        expect((await store.get(near))?.schedule?.dueAt).toBe(now + 60_000);
        expect(await due()).toEqual([refOf(far)]);
      });

      it('spreads overdue tasks evenly over the window, in their order, and leaves the others', async () => {
        const overdue: Task[] = [];
        for (const ago of [40, 30, 20, 10]) {
          overdue.push(await insert({}, { schedule: { dueAt: now - ago, intervalMs: 3 } }));
        }
        const onTime = await insert({}, { schedule: { dueAt: now, intervalMs: 3 } });
        const other = await insert({ adapter: 'other' }, { schedule: { dueAt: now - 5, intervalMs: 3 } });
        expect(await store.spread('builds', now, 1_000)).toBe(4);
        const schedules = await Promise.all(overdue.map(async (task) => (await store.get(task))?.schedule));
        expect(schedules).toEqual([0, 250, 500, 750].map((ms) => ({ dueAt: now + ms, intervalMs: 3 })));
        expect((await store.get(onTime))?.schedule?.dueAt).toBe(now);
        expect((await store.get(other))?.schedule?.dueAt).toBe(now - 5);
        expect(await store.spread('builds', now, 1_000)).toBe(0);
        expect(await store.spread('nobody', now, 1_000)).toBe(0);
      });
    });

    describe('purging and texts', () => {
      it('removes expired tasks up to the limit, oldest expiry first, and no others', async () => {
        const last = await insert({ expiresAt: now, stage: 'ended' });
        const first = await insert({ expiresAt: now - 2, stage: 'ended' });
        const second = await insert({ expiresAt: now - 1, stage: 'ended' });
        const kept = await insert({ expiresAt: now + 1 });
        expect(await store.purge(now, 2)).toBe(2);
        expect(await store.get(first)).toBeUndefined();
        expect(await store.get(second)).toBeUndefined();
        expect(await store.get(last)).toBeDefined();
        expect(await store.purge(now, 2)).toBe(1);
        expect(await store.purge(now, 2)).toBe(0);
        expect(await store.get(kept)).toBeDefined();
        expect(await due()).toEqual([refOf(kept)]);
      });

      it('never purges a task before its time, even by a fraction', async () => {
        await insert({ expiresAt: now + 0.5, stage: 'ended' });
        expect(await store.purge(now, 10)).toBe(0);
        expect(await store.purge(now + 1, 10)).toBe(1);
      });

      it('leaves a task that has not ended for another day', async () => {
        const running = await insert({ expiresAt: now });
        expect(await store.purge(now + unendedGrace - 1, 10)).toBe(0);
        expect(await store.get(running)).toBeDefined();
        expect(await store.purge(now + unendedGrace, 10)).toBe(1);
      });

      it('follows a record whose expiry moved', async () => {
        const task = await insert({ expiresAt: now, stage: 'ended' });
        await store.save({ task: nextVersion(task, { expiresAt: now + 500 }), durable: true });
        expect(await store.purge(now, 10)).toBe(0);
        expect((await store.get(task))?.task.expiresAt).toBe(now + 500);
        expect(await store.purge(now + 500, 10)).toBe(1);
      });

      it('keeps one text per digest, until its last task is removed or purged', async () => {
        const removed = await insert({ digest: 'a' }, { adapterText: 'first' });
        await insert({ digest: 'a', expiresAt: now, stage: 'ended' }, { adapterText: 'first' });
        await insert({ digest: 'b', adapter: 'other' }, { adapterText: 'second' });
        expect(await store.adapterText('a')).toBe('first');
        expect((await store.adapterDigests()).sort()).toEqual(['a', 'b']);
        await store.remove(removed);
        expect(await store.adapterText('a')).toBe('first');
        await store.purge(now, 10);
        expect(await store.adapterText('a')).toBeUndefined();
        expect(await store.adapterDigests()).toEqual(['b']);
        await insert({ digest: 'a' }, { adapterText: 'first' });
        expect(await store.adapterText('a')).toBe('first');
      });

      it('keeps the text of a task that ended until the task is purged', async () => {
        const task = await insert({ digest: 'a', expiresAt: now });
        await store.save({ task: nextVersion(task, { stage: 'ended' }), outcome: '{}', durable: true });
        expect(await store.adapterDigests()).toEqual(['a']);
        await store.purge(now, 1);
        expect(await store.adapterDigests()).toEqual([]);
      });

      it('has no text for a digest that it never saw', async () => {
        expect(await store.adapterText('nothing')).toBeUndefined();
      });
    });

    it('makes a setting once, and gives all who ask the same value', async () => {
      const values = await Promise.all(
        ['a', 'b', 'c'].map((value) => store.setting('requestState.key', () => value)),
      );
      expect(new Set(values).size).toBe(1);
      const again = await store.setting('requestState.key', () => {
        throw new Error('made twice');
      });
      expect(again).toBe(values[0]);
      expect(await store.setting('other', () => 'x')).toBe('x');
    });

    it('counts tasks per adapter and stage', async () => {
      const ended = await insert({ adapter: 'a', stage: 'creating' });
      await insert({ adapter: 'a' });
      await insert({ adapter: 'a', digest: 'digest-2' });
      await insert({ adapter: 'b', expiresAt: now, stage: 'ended' });
      await store.save({ task: nextVersion(ended, { stage: 'ended' }), outcome: '{}', durable: true });
      await store.purge(now, 10);
      expect(await store.counts()).toEqual([
        { adapter: 'a', stage: 'ended', count: 1 },
        { adapter: 'a', stage: 'following', count: 2 },
      ]);
    });

    it('shows every read the writes that resolved before it', async () => {
      for (let i = 0; i < 50; i++) {
        const task = await insert({}, { schedule: { dueAt: now + i, intervalMs: 1 } });
        expect((await store.get(task))?.task.id).toBe(task.id);
        const next = nextVersion(task, { message: `step ${i}` });
        await store.save({ task: next, schedule: { dueAt: now - i, intervalMs: 1 }, durable: i % 2 === 0 });
        expect((await store.get(task))?.task.message).toBe(`step ${i}`);
        expect(await store.nextDue('builds')).toBe(now - i);
        expect((await due(now, 1))[0]).toEqual(refOf(task));
      }
    });

    it('says that it works while it does', async () => {
      await expect(store.check()).resolves.toBeUndefined();
      await expect(store.check()).resolves.toBeUndefined();
    });

    it('finishes what was accepted before a close, then refuses every call', async () => {
      const entries = Array.from({ length: 50 }, () => makeEntry());
      const inserts = Promise.all(entries.map((entry) => store.insert(entry)));
      const closing = store.close();
      expect((await inserts).every(({ kind }) => kind === 'inserted')).toBe(true);
      await closing;
      await store.close();
      const task = makeTask();
      const calls = [
        store.insert(makeEntry()),
        store.get(task),
        store.save({ task, durable: true }),
        store.remove(task),
        store.reschedule(task, { dueAt: 0, intervalMs: 0 }, 1),
        store.lease(task, 0, 1),
        store.dueBefore('builds', 0, 1),
        store.nextDue('builds'),
        store.scheduledAdapters(),
        store.releaseLeases(),
        store.spread('builds', 0, 1),
        store.purge(0, 1),
        store.adapterText('a'),
        store.adapterDigests(),
        store.setting('a', () => ''),
        store.counts(),
        store.check(),
      ];
      for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'store_closed' });
    });

    if (kind.outlivesClose) describeReopening();

    function describeReopening(): void {
      const reopen = async (): Promise<void> => {
        await store.close();
        store = await kind.open(directory);
      };

      it('holds after a reopening what it held before', async () => {
        const task = fullTask();
        await store.insert(makeEntry(task));
        const ended = await insert({ digest: 'digest-2' });
        const next = nextVersion(ended, { stage: 'ended', ending: 'failed' });
        await store.save({ task: next, outcome: '{"id":9007199254740993}', durable: true });
        const secret = await store.setting('key', () => 'made once');
        await reopen();
        expect((await store.get(task))?.task).toEqual(task);
        expect((await store.get(task))?.schedule).toEqual({ dueAt: now, intervalMs: 5_000 });
        const outcome = '{"id":9007199254740993}';
        expect(await store.get(ended)).toEqual({ task: next, schedule: undefined, outcome });
        expect(await store.setting('key', () => 'made twice')).toBe(secret);
        expect(await store.adapterText('digest-2')).toBe('text of digest-2');
        expect(await store.counts()).toEqual([
          { adapter: 'builds', stage: 'ended', count: 1 },
          { adapter: 'builds', stage: 'following', count: 1 },
        ]);
        expect(await store.insert(makeEntry({ startKey: 'key-1' }))).toMatchObject({ kind: 'exists' });
      });

      it('keeps hints too over a proper close', async () => {
        const task = await insert();
        const next = nextVersion(task, { message: '3 of 4' });
        await store.save({ task: next, durable: false });
        await store.reschedule(next, { dueAt: now + 77, intervalMs: 8 }, 2);
        await reopen();
        expect(await store.get(task)).toMatchObject({
          task: { message: '3 of 4', version: 2 },
          schedule: { dueAt: now + 77, intervalMs: 8 },
        });
      });

      it('still holds a lease that was not released', async () => {
        const task = await insert();
        await store.lease(task, now, now + 100);
        await reopen();
        expect(await due(now + 99)).toEqual([]);
        await store.releaseLeases();
        expect(await due(now)).toEqual([refOf(task)]);
      });
    }
  });
}
