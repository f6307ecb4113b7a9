import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createMemoryStore } from '../../src/stores/memory.ts';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import { always, createWith, hangUp, routes } from '../drivers/adapted.ts';
import { type Handler, json, startHttpServer } from '../helpers/http-server.ts';
import { tempDir } from '../helpers/temp-dir.ts';
import { count, hasEnded, outcomeOf, type Service, startService } from './service-fixture.ts';

const cancelStep = `    cancel:
      request: POST /jobs/\${{ job.id }}/cancel`;
const made = always(201, { id: 7 });
const status = (state: string): Handler => always(200, { state, message: `is ${state}` });
const running = status('running');
const done = status('done');
const stopped = status('stopped');

const cancels = (service: Service): number => count(service.server, 'POST /jobs/7/cancel');

/** A followed job 7 whose polls and cancel are answered as told. */
async function following(
  polls: Handler | readonly Handler[],
  cancel: Handler | readonly Handler[] = always(202, ''),
  tool = cancelStep,
) {
  const service = await startService({
    parts: { tool },
    handler: routes({ 'POST /jobs': made, 'GET /jobs/7': polls, 'POST /jobs/7/cancel': cancel }),
  });
  return { ...service, task: (await service.started()).task };
}

describe('a cancel', () => {
  it('is due at once, is sent, and the task is cancelled when the upstream says so', async () => {
    const service = await following([running, running, stopped]);
    const { task, clock } = service;
    await service.tasks.cancel(task);
    const asked = await service.get(task);
    expect(asked.task).toMatchObject({ stage: 'following', phase: 'working', message: 'Cancel requested' });
    expect(asked.schedule?.dueAt).toBe(clock.now());
    const sent = await service.tick(task);
    expect(sent.task).toMatchObject({ stage: 'following', message: 'is running. Cancel requested' });
    expect(cancels(service)).toBe(1);
    // News is near, so the next look is too.
    expect((sent.schedule?.dueAt ?? 0) - clock.now()).toBeLessThanOrEqual(1_000);
    const ended = await service.until(task, hasEnded);
    expect(ended.task).toMatchObject({ phase: 'cancelled', ending: 'cancelled', message: 'is stopped' });
    expect(cancels(service)).toBe(1);
  });

  it.each([
    ['is unreachable', always(503, '')],
    ['refuses the credential', always(401, '')],
  ])('is sent within seconds though the status %s', async (_name, polls) => {
    const service = await following(polls);
    const { task, clock } = service;
    await service.tasks.cancel(task);
    expect((await service.tick(task)).task.cancel?.state).toBe('requested');
    const begin = clock.now();
    await service.until(task, ({ cancel }) => cancel?.state === 'sent', 20);
    expect(cancels(service)).toBe(1);
    expect(clock.now() - begin).toBeLessThan(30_000);
  });

  it('that came too late leaves the job its own outcome', async () => {
    const service = await following([running, running, done]);
    await service.tasks.cancel(service.task);
    const ended = await service.until(service.task, hasEnded);
    expect(cancels(service)).toBe(1);
    expect(ended.task).toMatchObject({ phase: 'succeeded', message: 'is done' });
    expect(outcomeOf(ended).result?.content[0]?.text).toBe('is done');
  });

  it('is not sent to a job that turns out to have ended', async () => {
    const service = await following(done);
    await service.tasks.cancel(service.task);
    expect((await service.tick(service.task)).task.ending).toBe('succeeded');
    expect(cancels(service)).toBe(0);
  });

  it('that the upstream refuses is acknowledged, says so, and the job is followed to its end', async () => {
    const service = await following([running, running, done], always(409, { error: 'cannot stop now' }));
    await service.tasks.cancel(service.task);
    const { message } = (await service.tick(service.task)).task;
    expect(message).toMatch(/cannot stop now.*Cancel requested, but the upstream refused it/);
    expect((await service.until(service.task, hasEnded)).task.ending).toBe('succeeded');
    expect(cancels(service)).toBe(1);
  });

  it('that no request of the adapter fits waits, unhurried, until the job has moved on', async () => {
    const when = cancelStep.replace('request:', 'when: response.body.state == "running"\n      request:');
    const service = await following(
      [...Array(4).fill(status('waiting')), running, stopped],
      always(202, ''),
      when,
    );
    await service.tasks.cancel(service.task);
    for (let i = 0; i < 4; i++) {
      const { task, schedule } = await service.tick(service.task);
      expect(task).toMatchObject({ cancel: { state: 'requested' }, message: 'is waiting. Cancel requested' });
      expect((schedule?.dueAt ?? 0) - service.clock.now()).toBeGreaterThanOrEqual(5_000);
    }
    expect(cancels(service)).toBe(0);
    expect((await service.until(service.task, hasEnded, 3)).task.phase).toBe('cancelled');
    expect(cancels(service)).toBe(1);
  });

  it('that the upstream cannot do is acknowledged, says so, and sends nothing', async () => {
    const service = await following([running, done], always(202, ''), '');
    await service.tasks.cancel(service.task);
    expect((await service.tick(service.task)).task.message).toBe(
      'is running. Cancel requested, but this upstream cannot cancel jobs: following it to its end',
    );
    expect((await service.until(service.task, hasEnded)).task.ending).toBe('succeeded');
    expect(service.server.seen.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET']);
  });

  it.each<[string, Handler]>([
    ['answers 503', always(503, '')],
    ['closes the connection', hangUp],
    ['refuses the credential', always(401, '')],
  ])('is sent again while the upstream %s', async (_name, failing) => {
    const service = await following(
      [running, running, running, stopped],
      [failing, failing, always(202, '')],
    );
    await service.tasks.cancel(service.task);
    const { task } = await service.tick(service.task);
    expect(task.cancel?.state).toBe('requested');
    expect((await service.until(service.task, hasEnded)).task.phase).toBe('cancelled');
    expect(cancels(service)).toBe(3);
  });

  it('waits while even the status can’t be read, and then is sent', async () => {
    const down = always(503, '');
    const service = await following([down, down, running, stopped]);
    await service.tasks.cancel(service.task);
    await service.tick(service.task);
    expect(cancels(service)).toBe(0);
    expect((await service.until(service.task, hasEnded)).task.phase).toBe('cancelled');
    expect(cancels(service)).toBe(1);
  });

  it('is sent once, however often it is asked for', async () => {
    const service = await following([running, running, running, stopped]);
    await Promise.all([1, 2, 3].map(() => service.tasks.cancel(service.task)));
    await service.tick(service.task);
    await service.tasks.cancel(service.task);
    await service.until(service.task, hasEnded);
    expect(cancels(service)).toBe(1);
  });

  it('of a task that has ended is acknowledged, changes nothing and calls nobody', async () => {
    const service = await following(done);
    const ended = await service.tick(service.task);
    const seen = service.server.seen.length;
    expect(await service.tasks.cancel(service.task)).toBe(true);
    await service.tasks.follow(service.task);
    expect(await service.get(service.task)).toEqual(ended);
    expect(service.server.seen).toHaveLength(seen);
  });

  it('of an unknown or foreign task is told apart from an acknowledgement', async () => {
    const service = await following(running);
    expect(await service.tasks.cancel({ caller: 'local', id: 'unknown' })).toBe(false);
    expect(await service.tasks.cancel({ caller: 'token:other', id: service.task.id })).toBe(false);
    expect((await service.get(service.task)).task.cancel).toBeUndefined();
  });

  it('that comes while it is in doubt whether the job exists is sent once it is found', async () => {
    const service = await startService({
      parts: { create: createWith('idempotency: { header: Idempotency-Key }'), tool: cancelStep },
      handler: always(503, ''),
    });
    const { task } = await service.started();
    expect(task.stage).toBe('creating');
    await service.tasks.cancel(task);
    expect((await service.get(task)).task.message).toMatch(/^It is not known yet.*Cancel requested$/);
    service.server.handle(
      routes({
        'POST /jobs': made,
        'GET /jobs/7': [running, stopped],
        'POST /jobs/7/cancel': always(202, ''),
      }),
    );
    expect((await service.until(task, hasEnded, 5)).task.phase).toBe('cancelled');
    expect(cancels(service)).toBe(1);
  });
});

describe('a cancel that was acknowledged', () => {
  it('is sent by the next process when the one that took it is gone', async () => {
    const path = join(tempDir(), 'tasks.db');
    const server = await startHttpServer(
      routes({
        'POST /jobs': made,
        'GET /jobs/7': [running, stopped],
        'POST /jobs/7/cancel': always(202, ''),
      }),
    );
    onTestFinished(() => server.close());
    const first = await openSqliteStore({ path });
    const before = await startService({ store: first, server, parts: { tool: cancelStep } });
    const { task } = await before.started();
    await before.tasks.cancel(task);
    await first.close();
    expect(count(server, 'POST /jobs/7/cancel')).toBe(0);

    const second = await openSqliteStore({ path });
    onTestFinished(() => second.close());
    const after = await startService({
      store: second,
      server,
      clock: before.clock,
      parts: { tool: cancelStep },
    });
    expect((await after.get(task)).task.message).toBe('Cancel requested');
    expect((await after.until(task, hasEnded, 5)).task.phase).toBe('cancelled');
    expect(count(server, 'POST /jobs/7/cancel')).toBe(1);
  });
});

const stores = {
  memory: async () => createMemoryStore(),
  SQLite: () => openSqliteStore({ path: join(tempDir(), 'tasks.db') }),
};

describe.each(Object.keys(stores) as (keyof typeof stores)[])(
  'fifty cancels and ends at once in %s',
  (kind) => {
    it('never blend: each reader sees a working task or a whole outcome, and nothing changes after it', async () => {
      let next = 0;
      const store = await stores[kind]();
      onTestFinished(() => store.close());
      const service = await startService({
        store,
        parts: { tool: cancelStep },
        handler: (request, response) => {
          if (request.method === 'GET') json(response, 200, { state: 'done', message: 'finished' });
          else if (request.url.endsWith('/cancel')) json(response, 202, '');
          else json(response, 201, { id: ++next });
        },
      });
      const tasks = await Promise.all(Array.from({ length: 50 }, () => service.started()));
      let over = false;
      const blends: string[] = [];
      const watching = (async () => {
        while (!over) {
          for (const { task } of tasks) {
            const seen = await service.get(task);
            const ended = seen.task.stage === 'ended';
            if (ended !== (seen.outcome !== undefined) || ended !== (seen.task.ending !== undefined)) {
              blends.push(`${seen.task.stage} ${seen.task.ending} ${seen.outcome}`);
            }
          }
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      await Promise.all(
        tasks.flatMap(({ task }, index) => {
          const cancel = () => service.tasks.cancel(task);
          const follow = () => service.tasks.follow(task);
          return index % 2 === 0 ? [cancel(), follow()] : [follow(), cancel()];
        }),
      );
      const first = await Promise.all(tasks.map(({ task }) => service.until(task, hasEnded, 5)));
      await Promise.all(tasks.map(({ task }) => service.tasks.cancel(task)));
      over = true;
      await watching;
      expect(blends).toEqual([]);
      for (const [index, stored] of first.entries()) {
        expect(stored.task).toMatchObject({ phase: 'succeeded', message: 'finished' });
        expect(outcomeOf(stored).result?.content[0]?.text).toBe('finished');
        expect(await service.get(tasks[index]?.task ?? stored.task)).toEqual(stored);
      }
    });
  },
);

describe('a cancel that escalates', () => {
  const ladder = `    cancel:
      - request: POST /jobs/\${{ job.id }}/cancel
      - { after: 30s, request: "POST /jobs/\${{ job.id }}/terminate" }
      - { after: 60s, request: "POST /jobs/\${{ job.id }}/kill" }`;
  const sentTo = (service: Service): string[] =>
    service.server.seen
      .filter(({ method }) => method === 'POST')
      .map(({ url }) => url.split('/').at(-1) ?? '');
  async function escalating(polls: Handler | readonly Handler[], terminate: Handler = always(202, '')) {
    const service = await startService({
      parts: { tool: `${ladder}\n    timing: { every: 20s, timeout: 1h }` },
      handler: routes({
        'POST /jobs': made,
        'GET /jobs/7': polls,
        'POST /jobs/7/cancel': always(202, ''),
        'POST /jobs/7/terminate': terminate,
        'POST /jobs/7/kill': always(202, ''),
      }),
    });
    const { task } = await service.started();
    await service.tasks.cancel(task);
    await service.tick(task);
    return { ...service, task, begin: service.clock.now() };
  }

  it('sends each further step when the job still goes on after its time, and once', async () => {
    const service = await escalating(running);
    await service.until(service.task, ({ cancel }) => cancel?.escalated === 30_000);
    expect(service.clock.now() - service.begin).toBeGreaterThanOrEqual(30_000);
    expect(service.clock.now() - service.begin).toBeLessThan(32_000);
    await service.until(service.task, ({ cancel }) => cancel?.escalated === 60_000);
    expect(service.clock.now() - service.begin).toBeLessThan(63_000);
    for (let i = 0; i < 5; i++) await service.tick(service.task);
    expect(sentTo(service)).toEqual(['jobs', 'cancel', 'terminate', 'kill']);
  });

  it('goes no further once the job has ended', async () => {
    const service = await escalating([running, running, stopped]);
    const ended = await service.until(service.task, hasEnded);
    expect(ended.task.ending).toBe('cancelled');
    expect(sentTo(service)).toEqual(['jobs', 'cancel']);
  });

  it('goes on to the next step though the upstream refuses one', async () => {
    const service = await escalating(running, always(409, {}));
    await service.until(service.task, ({ cancel }) => cancel?.escalated === 60_000);
    expect(sentTo(service)).toEqual(['jobs', 'cancel', 'terminate', 'kill']);
  });
});
