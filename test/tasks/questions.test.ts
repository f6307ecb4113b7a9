import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import type { Task } from '../../src/tasks/task.ts';
import { always, routes } from '../drivers/adapted.ts';
import { type Handler, startHttpServer } from '../helpers/http-server.ts';
import { tempDir } from '../helpers/temp-dir.ts';
import { count, hasEnded, startService } from './service-fixture.ts';

const ask = `    cancel:
      request: POST /jobs/\${{ job.id }}/cancel
    ask:
      - key: approve
        fetch:
          request: GET /jobs/\${{ job.id }}/gates
          capture: { gates: response.body }
        when: job.gates.size() > 0
        message: Approve \${{ job.gates[0] }}?
        schema: { type: object, required: [count], properties: { count: { type: integer } } }
        onAccept:
          request: POST /jobs/\${{ job.id }}/gates
          json: { count: "\${{ answer.count }}" }`;
const decline = `
        onDecline:
          request: DELETE /jobs/\${{ job.id }}/gates`;

const made = always(201, { id: 7 });
const status = (state: string): Handler => always(200, { state, message: `is ${state}` });
const waiting = status('waiting');
const running = status('running');
const prod = always(200, ['prod']);
const taken = always(204, '');

interface Upstream {
  polls: Handler | readonly Handler[];
  gates?: Handler | readonly Handler[];
  answers?: Handler | readonly Handler[];
  tool?: string;
}

const table = ({ polls, gates = prod, answers = taken }: Upstream) =>
  routes({
    'POST /jobs': made,
    'GET /jobs/7': polls,
    'GET /jobs/7/gates': gates,
    'POST /jobs/7/gates': answers,
    'DELETE /jobs/7/gates': answers,
    'POST /jobs/7/cancel': always(202, ''),
  });

/** A job that has just put its first question. */
async function asking(upstream: Upstream) {
  const service = await startService({ parts: { tool: upstream.tool ?? ask }, handler: table(upstream) });
  const { task } = await service.started();
  const asked = await service.tick(task);
  return { ...service, task: asked.task };
}

const keys = (task: Task): string[] => task.questions.map(({ key }) => key);
const accept = (key: string, count = 5n) => [{ key, action: 'accept' as const, content: { count } }];

describe('a question', () => {
  it('is put, answered, delivered as exact JSON, and the job goes on', async () => {
    const service = await asking({ polls: [waiting, waiting, running, status('done')] });
    expect(service.task).toMatchObject({
      phase: 'input_required',
      questions: [{ key: 'approve-1', message: 'Approve prod?' }],
      job: { gates: ['prod'] },
    });
    expect(await service.tasks.answer(service.task, accept('approve-1'))).toBe(true);
    const accepted = await service.get(service.task);
    expect(accepted.task).toMatchObject({ phase: 'working', questions: [] });
    expect(accepted.task.message).toContain('Passing the answer on');
    expect(accepted.schedule?.dueAt).toBe(service.clock.now());
    await service.tick(service.task);
    const sent = service.server.seen.find(({ method, url }) => `${method} ${url}` === 'POST /jobs/7/gates');
    expect(sent?.body).toBe('{"count":5}');
    expect((await service.until(service.task, hasEnded)).task.ending).toBe('succeeded');
    expect(count(service.server, 'POST /jobs/7/gates')).toBe(1);
  });

  it('stays the same question, under one key, over many polls', async () => {
    const service = await asking({ polls: waiting });
    const first = service.task;
    for (let i = 0; i < 5; i++) {
      const { task } = await service.tick(first);
      expect(keys(task)).toEqual(['approve-1']);
      expect(task.updatedAt).toBe(first.updatedAt);
    }
  });

  it.each<[string, Handler]>([
    ['503', always(503, '')],
    ['404', always(404, { error: 'x' })],
    ['410', always(410, { error: 'x' })],
    ['401', always(401, '')],
  ])('is not withdrawn, nor the job lost, when its own fetch fails with %s', async (_name, failing) => {
    const service = await asking({ polls: waiting, gates: [prod, ...Array(30).fill(failing), prod] });
    for (let i = 0; i < 30; i++) {
      const { task } = await service.tick(service.task);
      expect(task).toMatchObject({ stage: 'following', phase: 'input_required' });
      expect(keys(task)).toEqual(['approve-1']);
    }
    const { task } = await service.tick(service.task);
    expect(task).toMatchObject({ message: 'is waiting', trouble: { kind: undefined } });
  });

  it('is withdrawn when the job no longer waits for it', async () => {
    const service = await asking({ polls: [waiting, running] });
    expect((await service.tick(service.task)).task).toMatchObject({ phase: 'working', questions: [] });
    expect(await service.tasks.answer(service.task, accept('approve-1'))).toBe(true);
    await service.tick(service.task);
    expect(count(service.server, 'POST /jobs/7/gates')).toBe(0);
  });

  it('gets a new key when what it asks about has changed', async () => {
    const service = await asking({ polls: waiting, gates: [prod, always(200, ['test'])] });
    const { task } = await service.tick(service.task);
    expect(task.questions).toMatchObject([{ key: 'approve-2', message: 'Approve test?' }]);
  });

  it('is not there while nothing can be answered: the job reads as working', async () => {
    const service = await asking({ polls: waiting, gates: always(200, []) });
    expect(service.task).toMatchObject({ phase: 'working', questions: [], message: 'is waiting' });
  });
});

describe('an answer', () => {
  it('that the upstream refuses is asked for again with the reason, three times at most', async () => {
    const service = await asking({ polls: waiting, answers: always(422, { error: 'too few' }) });
    let { task } = service;
    for (const round of [1, 2, 3, 4]) {
      expect(keys(task)).toEqual([`approve-${round}`]);
      if (round > 1)
        expect(task.questions[0]?.message).toMatch(/^The last answer was refused: HTTP 422: .*too few/);
      await service.tasks.answer(task, accept(`approve-${round}`));
      task = (await service.until(task, ({ answers }) => answers.length === 0, 3)).task;
      task = (await service.tick(task)).task;
    }
    expect(task).toMatchObject({ stage: 'following', phase: 'working', questions: [] });
    expect(count(service.server, 'POST /jobs/7/gates')).toBe(4);
  });

  it('is delivered later when the upstream is down, and not asked for meanwhile', async () => {
    const service = await asking({
      polls: [...Array(4).fill(waiting), running],
      answers: [always(503, ''), always(503, ''), taken],
    });
    await service.tasks.answer(service.task, accept('approve-1'));
    for (let i = 0; i < 2; i++) {
      expect((await service.tick(service.task)).task).toMatchObject({
        questions: [],
        answers: [{ key: 'approve-1' }],
      });
    }
    expect((await service.tick(service.task)).task.answers).toEqual([]);
    expect(count(service.server, 'POST /jobs/7/gates')).toBe(3);
  });

  it('that declines is sent by its step', async () => {
    const service = await asking({ polls: [waiting, waiting, running], tool: ask + decline });
    await service.tasks.answer(service.task, [{ key: 'approve-1', action: 'decline', content: {} }]);
    await service.tick(service.task);
    expect(count(service.server, 'DELETE /jobs/7/gates')).toBe(1);
  });

  it.each(['decline', 'cancel'] as const)(
    'with which a person would %s, where the adapter has no step for it, sends nothing and ends the asking until the state changes',
    async (action) => {
      const service = await asking({ polls: [...Array(20).fill(waiting), running, waiting] });
      await service.tasks.answer(service.task, [{ key: 'approve-1', action, content: {} }]);
      for (let i = 0; i < 19; i++) {
        expect((await service.tick(service.task)).task).toMatchObject({ phase: 'working', questions: [] });
      }
      await service.tick(service.task);
      expect(keys((await service.tick(service.task)).task)).toEqual(['approve-2']);
      const others = service.server.seen.filter(({ method, url }) => method !== 'GET' && url !== '/jobs');
      expect(others).toEqual([]);
    },
  );

  it('is given a minute to show before the same question is put again', async () => {
    const service = await asking({ polls: waiting });
    await service.tasks.answer(service.task, accept('approve-1'));
    const delivered = (await service.tick(service.task)).task;
    const at = service.clock.now();
    const again = await service.until(delivered, ({ questions }) => questions.length > 0, 30);
    expect(keys(again.task)).toEqual(['approve-2']);
    expect(service.clock.now() - at).toBeGreaterThanOrEqual(60_000);
  });

  it('to a key that was never given out, or twice to one key, does nothing', async () => {
    const service = await asking({ polls: waiting });
    expect(await service.tasks.answer(service.task, accept('approve-9'))).toBe(true);
    expect(await service.get(service.task)).toMatchObject({ task: service.task });
    await service.tasks.answer(service.task, accept('approve-1', 1n));
    await service.tasks.answer(service.task, accept('approve-1', 2n));
    await service.tick(service.task);
    const sent = service.server.seen.filter(({ method, url }) => `${method} ${url}` === 'POST /jobs/7/gates');
    expect(sent.map(({ body }) => body)).toEqual(['{"count":1}']);
  });

  it('is not taken for an answer to another question, into which the first has changed', async () => {
    const service = await asking({ polls: waiting, gates: [prod, always(200, ['test'])] });
    await service.tasks.answer(service.task, accept('approve-1'));
    const asked = await service.until(service.task, ({ questions }) => questions.length > 0, 3);
    expect(asked.task.questions).toMatchObject([{ key: 'approve-2', message: 'Approve test?' }]);
    expect(count(service.server, 'POST /jobs/7/gates')).toBe(0);
    await service.tasks.answer(service.task, accept('approve-2'));
    await service.tick(service.task);
    expect(count(service.server, 'POST /jobs/7/gates')).toBe(1);
  });

  it('that was accepted but not delivered is withdrawn by a cancel', async () => {
    const service = await asking({ polls: [waiting, waiting, status('stopped')] });
    await service.tasks.answer(service.task, accept('approve-1'));
    await service.tasks.cancel(service.task);
    expect((await service.until(service.task, hasEnded, 5)).task.phase).toBe('cancelled');
    expect(count(service.server, 'POST /jobs/7/gates')).toBe(0);
  });

  it('that was accepted is delivered by the next process when the one that took it is gone', async () => {
    const path = join(tempDir(), 'tasks.db');
    const server = await startHttpServer(table({ polls: [waiting, waiting, running] }));
    onTestFinished(() => server.close());
    const first = await openSqliteStore({ path });
    const before = await startService({ store: first, server, parts: { tool: ask } });
    const { task } = await before.tick((await before.started()).task);
    await before.tasks.answer(task, accept('approve-1', 9007199254740993n));
    await first.close();
    expect(count(server, 'POST /jobs/7/gates')).toBe(0);

    const second = await openSqliteStore({ path });
    onTestFinished(() => second.close());
    const after = await startService({ store: second, server, clock: before.clock, parts: { tool: ask } });
    expect((await after.tick(task)).task.answers).toEqual([]);
    const sent = server.seen.filter(({ method, url }) => `${method} ${url}` === 'POST /jobs/7/gates');
    expect(sent.map(({ body }) => body)).toEqual(['{"count":9007199254740993}']);
  });
});
