import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StoreError } from '../../src/errors.ts';
import { createMemoryStore } from '../../src/stores/memory.ts';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import type { Store } from '../../src/stores/store.ts';
import { always, createWith, findByKey, hangUp, page, routes, silence } from '../drivers/adapted.ts';
import { type Handler, json } from '../helpers/http-server.ts';
import { recordedLog } from '../helpers/recorded-log.ts';
import { tempDir } from '../helpers/temp-dir.ts';
import { count, hasEnded, outcomeOf, startService } from './service-fixture.ts';

const made = always(201, '{"id":7421900188888888881}');
const done = always(200, { state: 'done', message: 'all over' });
const key = 'idempotency: { header: Idempotency-Key }';

/** Nothing may be left of a task that was refused. */
async function isEmpty(store: Store): Promise<boolean> {
  return (await store.counts()).length === 0 && (await store.scheduledAdapters()).length === 0;
}

describe('a refused create', () => {
  it.each<[string, Handler, RegExp]>([
    ['a 4xx', always(422, { message: 'no such branch' }), /no such branch/],
    ['a 401', always(401, {}), /HTTP 401/],
    ['a redirect', always(301, '', { location: '/jobs/' }), /\/jobs\//],
  ])(
    'by %s is answered at once, after one request, and leaves nothing in the store',
    async (_n, handler, words) => {
      const service = await startService({ handler });
      expect(await service.start()).toEqual({ kind: 'refused', message: expect.stringMatching(words) });
      expect(service.server.seen).toHaveLength(1);
      expect(await isEmpty(service.store)).toBe(true);
    },
  );

  it('is what a host that refuses connections gives, and nothing is left', async () => {
    const service = await startService({ environment: { UPSTREAM: 'http://127.0.0.1:9' } });
    expect(await service.start()).toMatchObject({ kind: 'refused' });
    expect(await isEmpty(service.store)).toBe(true);
  });

  it('leaves nothing even when the store fails for a moment at the removal', async () => {
    const store = createMemoryStore();
    let failures = 3;
    const service = await startService({
      handler: always(400, {}),
      store: {
        ...store,
        async remove(ref) {
          if (failures-- > 0) throw new StoreError('store_full', 'no space left');
          return store.remove(ref);
        },
      },
    });
    expect(await service.start()).toMatchObject({ kind: 'refused' });
    expect(await isEmpty(store)).toBe(true);
  });
});

describe('a 429', () => {
  it('is tried again when the upstream says, and then succeeds', async () => {
    const service = await startService({
      handler: routes({ 'POST /jobs': [always(429, '', { 'retry-after': '20' }), made] }),
    });
    const before = service.clock.now();
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'following', job: { id: 7421900188888888881n }, message: undefined });
    expect(service.clock.now() - before).toBeGreaterThanOrEqual(20_000);
    expect(count(service.server, 'POST /jobs')).toBe(2);
  });

  it.each([
    ['that asks for more than 60 seconds is refused at once', '3600', 1_000],
    ['that stays is refused after 60 seconds', '10', 61_000],
  ])('%s', async (_name, seconds, atMost) => {
    const service = await startService({
      handler: always(429, { message: 'slow' }, { 'retry-after': seconds }),
    });
    const before = service.clock.now();
    expect(await service.start()).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('HTTP 429'),
    });
    expect(service.clock.now() - before).toBeLessThanOrEqual(atMost);
    expect(await isEmpty(service.store)).toBe(true);
  });

  it('that has paused the adapter for an hour does not make the next call wait for an hour', async () => {
    const service = await startService({ handler: always(429, '', { 'retry-after': '3600' }) });
    await service.start();
    const before = service.clock.now();
    expect(await service.start()).toMatchObject({ kind: 'refused' });
    expect(service.clock.now() - before).toBeLessThanOrEqual(61_000);
    expect(count(service.server, 'POST /jobs')).toBe(1);
    expect(await isEmpty(service.store)).toBe(true);
  });
});

const doubts: [string, Handler][] = [
  ['500', always(500, { error: 'oops' })],
  ['408', always(408, '')],
  ['425', always(425, '')],
  ['a closed connection', hangUp],
  ['silence', silence],
  ['a broken reply', always(201, '{"id":')],
  ['a reply without an id', always(201, {})],
];

it('the log says that a task was created before it says that it ended, and never after', async () => {
  const { log, lines } = recordedLog();
  for (const handler of [
    routes({ 'POST /jobs': always(500, '') }),
    routes({ 'POST /jobs': made, 'GET /jobs/7421900188888888881': done }),
  ]) {
    const service = await startService({ log, handler, parts: { tool: '    timing: { settle: 2s }' } });
    expect((await service.started()).task.stage).toBe('ended');
  }
  const told = lines
    .map(({ message }) => message)
    .filter((message) => /^task (created|ended)$/.test(message));
  expect(told).toEqual(['task ended', 'task created', 'task ended']);
});

describe.each(doubts)('a create left in doubt by %s', (_name, handler) => {
  it('ends as an unknown outcome, after one request, when the adapter can do nothing', async () => {
    const service = await startService({ handler: routes({ 'POST /jobs': handler }) });
    const stored = await service.started();
    expect(stored.task).toMatchObject({ stage: 'ended', ending: 'outcome_unknown' });
    expect(outcomeOf(stored).error).toMatchObject({
      code: -32603,
      message: expect.stringContaining('a job may exist upstream'),
    });
    expect(count(service.server, 'POST /jobs')).toBe(1);
  });

  it('is sent again under the same key when the upstream knows keys', async () => {
    const service = await startService({
      parts: { create: createWith(key), upstream: '  timeouts: { headers: 5s }' },
      handler: routes({ 'POST /jobs': [handler, handler, made] }),
    });
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'following', job: { id: 7421900188888888881n } });
    const keys = service.server.seen.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([task.key, task.key, task.key]);
  });

  it('is sent again when repeating it does no harm', async () => {
    const service = await startService({
      parts: { create: createWith('repeatable: true') },
      handler: routes({ 'POST /jobs': [handler, made] }),
    });
    expect((await service.started()).task.stage).toBe('following');
  });

  it('is looked up, and not sent again when the job is found', async () => {
    const service = await startService({
      parts: { create: createWith(findByKey) },
      handler: routes({
        'POST /jobs': handler,
        'GET /jobs': [
          always(503, ''),
          always(200, { jobs: [] }),
          always(200, '{"jobs":[{"id":9007199254740993}]}'),
        ],
      }),
    });
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'following', job: { id: 9007199254740993n } });
    expect(count(service.server, 'POST /jobs')).toBe(1);
    const looks = service.server.seen.filter(({ method }) => method === 'GET');
    expect(new Set(looks.map(({ url }) => url))).toEqual(new Set([`/jobs?key=${task.key}`]));
  });
});

describe('a look-up', () => {
  it('that finds nothing again and again, beyond its time, lets the request be sent once more', async () => {
    const service = await startService({
      parts: { create: createWith(findByKey) },
      handler: routes({ 'POST /jobs': [hangUp, made], 'GET /jobs': always(200, { jobs: [] }) }),
    });
    const before = service.clock.now();
    const { task } = await service.started();
    expect(task.stage).toBe('following');
    expect(count(service.server, 'POST /jobs')).toBe(2);
    expect(count(service.server, 'GET /jobs')).toBeGreaterThanOrEqual(2);
    expect(service.clock.now() - before).toBeGreaterThanOrEqual(5_000);
  });

  it('starts anew after each send: the second doubt is given as long to show its job as the first', async () => {
    const posts: number[] = [];
    const service = await startService({
      parts: { create: createWith(findByKey) },
      handler: (request, response) => {
        if (request.method === 'GET') return json(response, 200, { jobs: [] });
        posts.push(service.clock.now());
        response.destroy();
      },
    });
    await service.started();
    expect(posts.length).toBeGreaterThanOrEqual(3);
    for (const [index, at] of posts.slice(1).entries()) {
      expect(at - (posts[index] ?? 0)).toBeGreaterThanOrEqual(5_000);
    }
  });

  it('whose second send is refused proves that there is no job: the call is refused, nothing is left', async () => {
    const service = await startService({
      parts: { create: createWith(findByKey) },
      handler: routes({
        'POST /jobs': [always(502, ''), always(422, { message: 'branch is gone' })],
        'GET /jobs': always(200, { jobs: [] }),
      }),
    });
    expect(await service.start()).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('branch is gone'),
    });
    expect(await isEmpty(service.store)).toBe(true);
  });

  it('that gets a page of a balancer never leads to a second job', async () => {
    const service = await startService({
      parts: { create: createWith(findByKey) },
      handler: routes({ 'POST /jobs': hangUp, 'GET /jobs': page }),
    });
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'creating', create: { doubt: { looks: 0 } } });
    expect(count(service.server, 'POST /jobs')).toBe(1);
  });

  it('that can never tell ends the task as an unknown outcome', async () => {
    const service = await startService({
      parts: { create: createWith(findByKey) },
      handler: routes({ 'POST /jobs': hangUp, 'GET /jobs': always(400, { error: 'no such filter' }) }),
    });
    expect((await service.started()).task).toMatchObject({
      ending: 'outcome_unknown',
      message: expect.stringContaining('no such filter'),
    });
  });
});

describe('a repeated request', () => {
  it.each<[string, Handler]>([
    ['is not reached', hangUp],
    ['finds the upstream overloaded', always(429, '', { 'retry-after': '1' })],
    ['finds the credential refused', always(401, '')],
  ])('leaves the doubt open when it %s', async (_name, handler) => {
    const service = await startService({
      parts: { create: createWith(key) },
      handler: routes({ 'POST /jobs': [always(503, ''), handler, handler, made] }),
    });
    expect((await service.started()).task.stage).toBe('following');
  });

  it('leaves the doubt open while the upstream refuses connections', async () => {
    const service = await startService({
      parts: { create: createWith(key) },
      handler: (_request, response) => {
        json(response, 503, '');
        service.environment.UPSTREAM = 'http://127.0.0.1:9';
      },
    });
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'creating', message: expect.stringContaining('127.0.0.1:9') });
    service.environment.UPSTREAM = service.server.origin;
    service.server.handle(routes({ 'POST /jobs': made }));
    expect((await service.tick(task)).task.stage).toBe('following');
  });

  it('that is refused proves nothing: the job of the first may run', async () => {
    const service = await startService({
      parts: { create: createWith(key) },
      handler: routes({ 'POST /jobs': [always(503, ''), always(409, { error: 'key in use' })] }),
    });
    expect((await service.started()).task).toMatchObject({
      ending: 'outcome_unknown',
      message: expect.stringContaining('key in use'),
    });
  });

  it('that is refused leaves it to the look-up, if there is one', async () => {
    const service = await startService({
      parts: { create: `${createWith(key)}\n      ${findByKey}` },
      handler: routes({
        'POST /jobs': [always(503, ''), always(409, { error: 'key in use' })],
        'GET /jobs': always(200, { jobs: [{ id: 12 }] }),
      }),
    });
    expect((await service.started()).task).toMatchObject({ stage: 'following', job: { id: 12n } });
  });

  it('is not sent once the upstream has forgotten the key: then the outcome is unknown', async () => {
    const service = await startService({
      parts: { create: createWith('idempotency: { header: Idempotency-Key, ttl: 3s }') },
      handler: routes({ 'POST /jobs': always(503, '') }),
    });
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'ended', ending: 'outcome_unknown' });
    expect(count(service.server, 'POST /jobs')).toBeLessThanOrEqual(4);
  });

  it('gives way to the look-up once the upstream has forgotten the key', async () => {
    const service = await startService({
      parts: {
        create: `${createWith('idempotency: { header: Idempotency-Key, ttl: 3s }')}\n      ${findByKey}`,
      },
      handler: routes({
        'POST /jobs': always(503, ''),
        'GET /jobs': always(200, { jobs: [{ id: 12 }] }),
      }),
    });
    expect((await service.started()).task).toMatchObject({ stage: 'following', job: { id: 12n } });
  });
});

describe('a doubt that is still open after 60 seconds', () => {
  it('is answered with the task, whose message says so, and is resolved later', async () => {
    const service = await startService({
      parts: { create: createWith(key) },
      handler: always(503, { error: 'maintenance' }),
    });
    const before = service.clock.now();
    const { task, schedule } = await service.started();
    expect(service.clock.now() - before).toBeLessThanOrEqual(61_000);
    expect(service.clock.now() - before).toBeGreaterThanOrEqual(30_000);
    expect(task).toMatchObject({ stage: 'creating', phase: 'working' });
    expect(task.message).toMatch(/^It is not known yet whether the job was created: HTTP 503.*maintenance/);
    expect(schedule?.dueAt).toBeGreaterThan(service.clock.now());
    const sent = count(service.server, 'POST /jobs');
    expect(sent).toBeLessThan(20);

    service.server.handle(routes({ 'POST /jobs': made, 'GET /jobs/7421900188888888881': done }));
    const ended = await service.until(task, hasEnded, 3);
    expect(ended.task).toMatchObject({ ending: 'succeeded', job: { id: 7421900188888888881n } });
    expect(outcomeOf(ended).result?.content[0]?.text).toBe('all over');
  });

  it('comes also from a request that never gets an answer', async () => {
    const service = await startService({
      parts: { create: createWith(key), upstream: '  timeouts: { headers: 10m }' },
      handler: silence,
    });
    const before = service.clock.now();
    const { task } = await service.started();
    expect(task.stage).toBe('creating');
    expect(service.clock.now() - before).toBeLessThanOrEqual(61_000);
  });

  it('is asked about ever more seldom, and ends at the deadline', async () => {
    const service = await startService({
      parts: { create: createWith(key), tool: '    timing: { timeout: 2h }' },
      handler: always(503, ''),
    });
    const { task } = await service.started();
    const before = count(service.server, 'POST /jobs');
    const ended = await service.until(task, hasEnded, 200);
    expect(ended.task.ending).toBe('timed_out');
    expect(service.clock.now() - task.createdAt).toBe(7_200_000);
    expect(count(service.server, 'POST /jobs') - before).toBeLessThan(140);
  });

  it('that turns out to be a refusal ends the task, and says that nothing was created', async () => {
    const refused = always(422, { message: 'branch is gone' });
    const service = await startService({
      parts: { create: createWith(findByKey) },
      handler: routes({ 'POST /jobs': [always(502, ''), refused], 'GET /jobs': always(503, '') }),
    });
    const { task } = await service.started();
    service.server.handle(routes({ 'POST /jobs': refused, 'GET /jobs': always(200, { jobs: [] }) }));
    const ended = await service.until(task, hasEnded, 5);
    expect(ended.task).toMatchObject({ ending: 'upstream_error' });
    expect(ended.task.message).toMatch(/^the job was not created: .*branch is gone/);
  });
});

describe('a create of several steps', () => {
  const steps = `    create:
      - step: upload
        request: PUT /files
        capture: { file: response.body.file }
      - step: start
        request: POST /jobs
        json: { file: "\${{ job.file }}" }
        idempotency: true
        headers: { X-Key: "\${{ task.key }}" }
        capture: { id: response.body.id }`;

  it('goes on at the step whose captures are missing, and repeats none before it', async () => {
    const service = await startService({
      parts: { create: steps },
      handler: routes({
        'PUT /files': always(200, { file: 'f1' }),
        'POST /jobs': [always(502, ''), hangUp, made],
      }),
    });
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'following', job: { file: 'f1', id: 7421900188888888881n } });
    expect(count(service.server, 'PUT /files')).toBe(1);
    expect(count(service.server, 'POST /jobs')).toBe(3);
    expect(service.server.seen.at(-1)?.body).toBe('{"file":"f1"}');
  });

  it('is resumed at that step by the next process, under the same key', async () => {
    const path = join(tempDir(), 'tasks.db');
    const first = await openSqliteStore({ path });
    let lastReply: Handler = (_request, response) => {
      void first.close().then(() => response.destroy());
    };
    const before = await startService({
      parts: { create: steps },
      store: first,
      handler: routes({
        'PUT /files': always(200, { file: 'f1' }),
        'POST /jobs': (...exchange) => lastReply(...exchange),
      }),
    });
    expect(await before.start()).toMatchObject({ kind: 'task', stored: { task: { stage: 'creating' } } });

    lastReply = made;
    const second = await openSqliteStore({ path });
    onTestFinished(() => second.close());
    const after = await startService({
      parts: { create: steps },
      store: second,
      server: before.server,
      clock: before.clock,
    });
    await second.releaseLeases();
    const [ref] = await second.dueBefore('jobs', after.clock.now(), 1);
    if (ref === undefined) throw new Error('the task is not due');
    const { task } = await after.tick(ref);
    expect(task).toMatchObject({ stage: 'following', job: { file: 'f1', id: 7421900188888888881n } });
    expect(count(before.server, 'PUT /files')).toBe(1);
    const sent = before.server.seen.filter(({ method }) => method === 'POST');
    expect(sent.map(({ headers }) => headers['x-key'])).toEqual([task.key, task.key]);
  });

  it('ends as an unknown outcome when its first step is in doubt and says nothing about repeating', async () => {
    const service = await startService({
      parts: { create: steps },
      handler: routes({ 'PUT /files': always(500, '') }),
    });
    expect((await service.started()).task).toMatchObject({ ending: 'outcome_unknown' });
    expect(service.server.seen).toHaveLength(1);
  });

  it('leaves nothing when the last step is refused', async () => {
    const service = await startService({
      parts: { create: steps },
      handler: routes({ 'PUT /files': always(200, { file: 'f1' }), 'POST /jobs': always(400, {}) }),
    });
    expect(await service.start()).toMatchObject({ kind: 'refused' });
    expect(await isEmpty(service.store)).toBe(true);
  });
});

describe('an id above 2^53', () => {
  it('is exact in the URL of the status, the store, the message and the result', async () => {
    const service = await startService({
      parts: {
        tool: `    result: { structured: { id: "\${{ job.id }}" }, text: "job \${{ job.id }}" }`,
      },
      handler: routes({
        'POST /jobs': made,
        'GET /jobs/7421900188888888881': always(200, '{"state":"done","message":7421900188888888881}'),
      }),
    });
    const { task } = await service.started();
    const ended = await service.tick(task);
    expect(ended.task).toMatchObject({ job: { id: 7421900188888888881n }, message: '7421900188888888881' });
    expect(ended.outcome).toContain('"structuredContent":{"id":7421900188888888881}');
    expect(ended.outcome).toContain('"text":"job 7421900188888888881"');
  });
});

describe('a client that goes away', () => {
  it('before anything was stored starts nothing', async () => {
    const service = await startService();
    expect(await service.start({ signal: AbortSignal.abort() })).toEqual({ kind: 'aborted' });
    expect(service.server.seen).toHaveLength(0);
  });

  it('changes nothing about a create that is under way, nor about its recovery', async () => {
    const gone = new AbortController();
    const service = await startService({
      parts: { create: createWith(key) },
      handler: routes({
        'POST /jobs': [
          (_request, response) => {
            gone.abort();
            response.destroy();
          },
          made,
        ],
      }),
    });
    const { task } = await service.started({ signal: gone.signal });
    expect(gone.signal.aborted).toBe(true);
    expect(task).toMatchObject({ stage: 'following', cancel: undefined });
  });
});

describe('a full store', () => {
  /** Fails `insert` or `save` so often, as a full disk does. */
  function failing(method: 'insert' | 'save' | 'reschedule', times: number): Store {
    const store = createMemoryStore();
    let left = times;
    return {
      ...store,
      [method]: async (entry: unknown, ...rest: unknown[]) => {
        if (left-- > 0) throw new StoreError('store_full', 'the disk is full');
        return (store[method] as (...all: unknown[]) => Promise<unknown>)(entry, ...rest);
      },
    };
  }

  it('at the intent means that the upstream hears nothing', async () => {
    const service = await startService({ store: failing('insert', 1), handler: made });
    await expect(service.start()).rejects.toMatchObject({ code: 'store_full' });
    expect(service.server.seen).toHaveLength(0);
    expect((await service.started()).task.stage).toBe('following');
  });

  it('at the link is tried again until the job is linked, without a second request', async () => {
    const { log, lines } = recordedLog();
    const service = await startService({ store: failing('save', 20), handler: made, log });
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'following', job: { id: 7421900188888888881n } });
    expect(service.server.seen).toHaveLength(1);
    // Once for all of the tries.
    expect(lines.filter(({ level }) => level === 'error')).toMatchObject([{ task: task.key }]);
  });

  it('after the link takes nothing from the caller: the task is answered, and followed later', async () => {
    const service = await startService({ store: failing('reschedule', 1), handler: made });
    const { task } = await service.started();
    expect(task).toMatchObject({ stage: 'following', job: { id: 7421900188888888881n } });
    service.server.handle(done);
    expect((await service.until(task, hasEnded, 3)).task.ending).toBe('succeeded');
  });

  it('at the link for long answers with the task all the same, and leaves the job to recovery by its key', async () => {
    const store = failing('save', 130);
    const { log, lines } = recordedLog();
    const service = await startService({ parts: { create: createWith(key) }, store, handler: made, log });
    expect(await service.start()).toMatchObject({ kind: 'task', stored: { task: { stage: 'creating' } } });
    const told = lines.filter(({ level }) => level !== 'info');
    const [ref] = await store.dueBefore('jobs', service.clock.now() + 120_000, 1);
    if (ref === undefined) throw new Error('the task is not scheduled');
    const { task } = await service.passing(service.tick(ref));
    expect(task.stage).toBe('following');
    // That it is tried, that it is given up, and what becomes of the task.
    expect(told).toMatchObject([
      { level: 'error', task: task.key },
      { level: 'error', task: task.key },
      { level: 'warn', task: task.key },
    ]);
    const keys = service.server.seen.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([task.key, task.key]);
  });
});

describe('a start that is repeated under the same key', () => {
  it('gives the same task, also while the first is under way, and one job', async () => {
    const service = await startService({
      handler: (_request, response) => void setTimeout(() => json(response, 201, { id: 1 }), 50),
    });
    const answers = await Promise.all(
      [1, 2, 3].map(() => service.started({ startKey: 'client:a', args: { name: 'x' } })),
    );
    expect(new Set(answers.map(({ task }) => task.id)).size).toBe(1);
    expect(service.server.seen).toHaveLength(1);
    expect(await service.start({ startKey: 'client:a', args: { name: 'y' } })).toEqual({
      kind: 'key_reused',
    });
  });

  it('is a start of its own when the first was refused', async () => {
    const service = await startService({
      handler: routes({ 'POST /jobs': [always(400, { error: 'not today' }), made] }),
    });
    const [first, second] = await Promise.all([
      service.start({ startKey: 'client:a' }),
      service.start({ startKey: 'client:a' }),
    ]);
    expect([first?.kind, second?.kind].sort()).toEqual(['refused', 'task']);
  });
});
