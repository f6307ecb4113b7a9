import { describe, expect, it } from 'vitest';
import { always, hangUp, page, routes, withToken } from '../drivers/adapted.ts';
import { createFakeClock } from '../helpers/fake-clock.ts';
import { type Handler, json } from '../helpers/http-server.ts';
import { count, hasEnded, outcomeOf, startService } from './service-fixture.ts';

const made = always(201, { id: 7 });
const running = always(200, { state: 'running', message: '1/9' });
const done = always(200, { state: 'done', message: '9/9' });
const minute = 60_000;

/** A service whose job 7 answers its polls one after the other with `polls`. */
async function following(polls: Handler | readonly Handler[], parts = {}) {
  const service = await startService({
    parts,
    handler: routes({ 'POST /jobs': made, 'GET /jobs/7': polls }),
  });
  return { ...service, task: (await service.started()).task };
}

describe('bad polls', () => {
  it('never end a task: running, 502, 502, running, reset, done', async () => {
    // A connection that was kept open and fails is tried once more at once, so the reset is there twice.
    const polls = [running, always(502, ''), always(502, ''), running, hangUp, hangUp, done];
    const { until, tick, task } = await following(polls);
    const troubled: boolean[] = [];
    for (let i = 0; i < 5; i++) {
      const { message } = (await tick(task)).task;
      expect(message).toMatch(/^1\/9/);
      troubled.push(message?.includes('Upstream unreachable since') ?? false);
    }
    expect(troubled).toEqual([false, true, true, false, true]);
    expect((await until(task, hasEnded)).task).toMatchObject({ ending: 'succeeded' });
  });

  it('of 30 minutes of 503 leave the task working, and its success is told', async () => {
    const clock = createFakeClock();
    let up = clock.now();
    const service = await startService({
      clock,
      handler: (request, response, raw) => {
        if (request.method === 'POST') {
          up = clock.now() + 30 * minute;
          return made(request, response, raw);
        }
        (clock.now() < up ? always(503, { error: 'down' }) : done)(request, response, raw);
      },
    });
    const { task } = await service.started();
    const during = await service.until(task, () => clock.now() >= up - 2 * minute);
    expect(during.task).toMatchObject({ stage: 'following', phase: 'working' });
    expect(during.task.message).toMatch(/^Upstream unreachable since 2027-.*Z: HTTP 503/);
    expect((await service.until(task, hasEnded)).task).toMatchObject({ ending: 'succeeded', message: '9/9' });
    expect(count(service.server, 'POST /jobs')).toBe(1);
    // Five seconds at first, a minute in the end.
    expect(count(service.server, 'GET /jobs/7')).toBeLessThan(45);
  });

  it('that a balancer answers with its own 404 pages never make a job lost', async () => {
    const { until, task } = await following([...Array(20).fill(page), done]);
    expect((await until(task, hasEnded)).task.ending).toBe('succeeded');
  });

  it('tell what they are: a refused poll is not called unreachable', async () => {
    const { tick, task } = await following(always(400, { error: 'bad project' }));
    expect((await tick(task)).task.message).toMatch(
      /^The upstream refuses to tell the status since .*: HTTP 400: .*bad project/,
    );
  });

  it('never make the message longer than 500 characters', async () => {
    const long = 'x'.repeat(5_000);
    const { tick, task, tasks } = await following([
      always(200, { state: 'running', message: long }),
      always(400, { error: long }),
    ]);
    await tick(task);
    await tasks.cancel(task);
    const { message = '' } = (await tick(task)).task;
    expect([...message].length).toBeLessThanOrEqual(500);
    expect(message).toContain('The upstream refuses to tell the status since');
    expect(message).toMatch(
      /Cancel requested, but this upstream cannot cancel jobs: following it to its end$/,
    );
  });
});

describe('a job that is not found', () => {
  const missing = always(404, { error: 'no such job' });

  it('may show up within a minute', async () => {
    const { until, task } = await following([missing, missing, running, done]);
    expect((await until(task, hasEnded)).task.ending).toBe('succeeded');
  });

  it('is lost after that minute and three polls in a row', async () => {
    const { until, clock, task } = await following(missing);
    const ended = await until(task, hasEnded);
    expect(ended.task.ending).toBe('job_lost');
    expect(clock.now() - task.createdAt).toBeGreaterThan(minute);
    expect(outcomeOf(ended).error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/no longer knows this job: .*no such job.* \(id: 7\)$/),
      data: { reason: 'job_lost' },
    });
  });

  it('is not lost by 404s that another reply comes between', async () => {
    const late = [...Array(20).fill(running), missing, missing, always(503, ''), missing, missing, done];
    const { until, task } = await following(late);
    expect((await until(task, hasEnded)).task.ending).toBe('succeeded');
  });

  it('is lost at once by a 410', async () => {
    const { tick, task } = await following(always(410, { error: 'expired' }));
    expect((await tick(task)).task.ending).toBe('job_lost');
  });
});

describe('a status that can’t be read', () => {
  const none = always(200, { error: { message: 'no such batch' } });

  it('ten times in a row ends the task as unreadable', async () => {
    const { until, task, server } = await following(none);
    const ended = await until(task, hasEnded);
    expect(ended.task.ending).toBe('status_unreadable');
    expect(outcomeOf(ended).error?.message).toContain('`response.body.state` gives nothing');
    expect(count(server, 'GET /jobs/7')).toBe(10);
  });

  it('is forgiven when another reply comes between', async () => {
    const { until, task } = await following([
      ...Array(9).fill(none),
      always(503, ''),
      ...Array(9).fill(none),
      always(200, { state: 'hibernating' }),
      ...Array(9).fill(none),
      done,
    ]);
    expect((await until(task, hasEnded)).task.ending).toBe('succeeded');
  });

  it('is not the same as a word that nobody knows, which never ends a task', async () => {
    const { until, tick, task } = await following([
      ...Array(30).fill(always(200, { state: 'hibernating' })),
      done,
    ]);
    expect((await tick(task)).task.message).toBe('Unknown status "hibernating", read as working');
    expect((await until(task, hasEnded)).task.ending).toBe('succeeded');
  });
});

describe('a credential', () => {
  it('that the upstream refuses pauses the task with a message, and mends itself', async () => {
    const refused = always(401, { message: 'token expired' });
    const { tick, until, task } = await following([...Array(12).fill(refused), done]);
    const paused = await tick(task);
    expect(paused.task).toMatchObject({ stage: 'following', phase: 'working' });
    expect(paused.task.message).toMatch(/^The upstream refuses the credential \(HTTP 401: .*token expired/);
    expect((await until(task, hasEnded)).task.ending).toBe('succeeded');
  });

  it('whose permission is missing does the same', async () => {
    const { tick, until, task } = await following([always(403, { message: 'not yours' }), done]);
    expect((await tick(task)).task.message).toContain('The upstream refuses the credential (HTTP 403');
    expect((await until(task, hasEnded)).task.ending).toBe('succeeded');
  });

  it.each<[string, Handler]>([
    ['a time', always(403, { message: 'x' }, { 'retry-after': '90' })],
    ['nothing remaining', always(403, {}, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '90' })],
    ['words alone', always(403, { message: 'You have exceeded a secondary rate limit' })],
  ])('that is limited, by a 403 with %s, waits and goes on', async (_name, limited) => {
    const service = await following([limited, done]);
    expect((await service.tick(service.task)).task.message).toContain('Upstream unreachable since');
    const ended = await service.passing(service.until(service.task, hasEnded));
    expect(ended.task.ending).toBe('succeeded');
    expect(service.clock.now() - service.task.createdAt).toBeGreaterThanOrEqual(minute);
  });

  it('that is missing keeps the task working with its name in the message, and goes on once it is set', async () => {
    const environment: { [name: string]: string } = { TOKEN: 'a-first-token' };
    const service = await startService({
      parts: withToken,
      environment,
      handler: routes({ 'POST /jobs': made, 'GET /jobs/7': done }),
    });
    const { task } = await service.started();
    delete environment.TOKEN;
    for (let i = 0; i < 5; i++) {
      const { task: paused } = await service.tick(task);
      expect(paused).toMatchObject({ stage: 'following', message: expect.stringContaining('TOKEN') });
    }
    expect(count(service.server, 'GET /jobs/7')).toBe(0);
    environment.TOKEN = 'a-second-token';
    expect((await service.tick(task)).task.ending).toBe('succeeded');
    expect(service.server.seen.at(-1)?.headers.authorization).toBe('Bearer a-second-token');
  });
});

describe('when to look again', () => {
  const date = (ms: number): string => new Date(ms).toUTCString();
  const now = Date.parse('2031-05-06T07:08:09Z');

  it.each<[string, { [name: string]: string }, number]>([
    ['nothing is asked', {}, 5_000],
    ['30 seconds', { 'retry-after': '30' }, 30_000],
    ['less than the interval', { 'retry-after': '1' }, 5_000],
    ['a date 10 seconds ahead', { 'retry-after': date(now + 10_000), date: date(now) }, 10_000],
    ['a date in the past', { 'retry-after': date(now - 60_000), date: date(now) }, 5_000],
    ['a negative number', { 'retry-after': '-5' }, 5_000],
    ['a word', { 'retry-after': 'soon' }, 5_000],
    ['thirty years', { 'retry-after': '1e9' }, 5_000],
    ['thirty years in digits', { 'retry-after': '1000000000' }, 3_600_000],
  ])('after a reply that says %s', async (_name, headers, wait) => {
    for (const status of [200, 503]) {
      const clock = createFakeClock(now);
      const service = await startService({
        clock,
        handler: routes({ 'POST /jobs': made, 'GET /jobs/7': always(status, { state: 'running' }, headers) }),
      });
      const { task } = await service.started();
      const { schedule } = await service.tick(task);
      expect((schedule?.dueAt ?? 0) - clock.now()).toBe(wait);
    }
  });

  it('starts five seconds after the link and grows to a minute while nothing changes', async () => {
    const { tick, task, clock } = await following(always(200, { state: 'running' }));
    const waits: number[] = [];
    for (let i = 0; i < 9; i++) {
      const { schedule } = await tick(task);
      waits.push((schedule?.dueAt ?? 0) - clock.now());
    }
    expect(waits[0]).toBe(5_000);
    expect(waits.at(-1)).toBe(minute);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
  });
});

describe('the interval after a bad time', () => {
  it('starts again with the first good poll, though the job says nothing new', async () => {
    const { tick, task, clock } = await following([running, ...Array(12).fill(always(503, '')), running]);
    const waits: number[] = [];
    for (let i = 0; i < 14; i++) {
      const { schedule } = await tick(task);
      waits.push((schedule?.dueAt ?? 0) - clock.now());
    }
    expect(waits[12]).toBe(minute);
    expect(waits[13]).toBe(5_000);
  });
});

describe('settle', () => {
  const settling = { tool: '    timing: { settle: 2s }' };

  it('answers a job that ends at once, by the poll that follows the create', async () => {
    const { task } = await following(done, settling);
    expect(task).toMatchObject({ stage: 'ended', ending: 'succeeded' });
  });

  it('looks every 250 ms, and hands over what takes longer', async () => {
    const quick = await following([running, running, done], settling);
    expect(quick.task.stage).toBe('ended');
    expect(quick.clock.now() - quick.task.createdAt).toBeLessThanOrEqual(1_000);
    const slow = await following(running, settling);
    expect(slow.task).toMatchObject({ stage: 'following', message: '1/9' });
    expect(count(slow.server, 'GET /jobs/7')).toBe(9);
  });

  it('keeps to its time when the status takes long to come', async () => {
    const slow: Handler = (_request, response) => void setTimeout(() => json(response, 200, {}), 400);
    const { task, clock } = await following(slow, settling);
    expect(task.stage).toBe('following');
    expect(clock.now() - task.createdAt).toBeLessThanOrEqual(3_000);
  });

  it('is over when the upstream asks to come back later, and so much later is looked again', async () => {
    const patient = always(200, { state: 'running' }, { 'retry-after': '30' });
    const service = await startService({
      parts: settling,
      handler: routes({ 'POST /jobs': made, 'GET /jobs/7': patient }),
    });
    const { schedule, task } = await service.started();
    expect(count(service.server, 'GET /jobs/7')).toBe(1);
    const wait = (schedule?.dueAt ?? 0) - task.createdAt;
    expect(wait).toBeGreaterThanOrEqual(30_000);
    expect(wait).toBeLessThan(35_000);
  });
});

describe('the result', () => {
  const fetched = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/output" }
      structured: { rows: "\${{ response.body.rows }}", url: "\${{ response.body.?url }}" }`;
  const withOutput = `    output:
      type: object
      required: [rows]
      properties: { rows: { type: integer }, url: { type: string } }
${fetched}`;

  async function finished(
    output: Handler | readonly Handler[],
    tool = fetched,
    polls: Handler | Handler[] = done,
  ) {
    const service = await startService({
      parts: { tool },
      handler: routes({ 'POST /jobs': made, 'GET /jobs/7': polls, 'GET /jobs/7/output': output }),
    });
    const { task } = await service.started();
    const stored = await service.until(task, hasEnded, 30);
    return { ...service, stored, result: outcomeOf(stored).result };
  }

  it('comes with the end in one change', async () => {
    const { result, stored } = await finished(always(200, { rows: 3 }));
    expect(result).toMatchObject({ structuredContent: { rows: 3 }, content: [{ text: '{"rows":3}' }] });
    expect(result).not.toHaveProperty('isError');
    expect(stored.task).toMatchObject({ phase: 'succeeded', verdict: 'succeeded' });
  });

  it('is an error with the text kept when it does not match the output schema', async () => {
    const { result, stored } = await finished(always(200, { rows: 3, url: null }), withOutput);
    expect(stored.task.ending).toBe('succeeded');
    expect(result).toMatchObject({ isError: true });
    expect(result).not.toHaveProperty('structuredContent');
    expect(result?.content[0]?.text).toMatch(/its result does not match.*url[\s\S]*\{"rows":3,"url":null\}$/);
  });

  it('matches the output schema when an optional field is not there', async () => {
    const { result } = await finished(always(200, { rows: 3 }), withOutput);
    expect(result?.structuredContent).toEqual({ rows: 3 });
  });

  it('of a failed job is an error without structured content', async () => {
    const tool = withOutput
      .replace('result:', 'failure:')
      .replace(/ {4}output:[\s\S]*?\n(?= {4}failure)/, '');
    const failed = always(200, { state: 'failed', message: '3 tests failed' });
    const { result, stored } = await finished(always(200, { rows: 3 }), tool, failed);
    expect(stored.task).toMatchObject({ phase: 'failed', ending: 'failed' });
    expect(result).toMatchObject({ isError: true, content: [{ text: '{"rows":3}' }] });
    expect(result).not.toHaveProperty('structuredContent');
  });

  it('that is gone leaves the verdict', async () => {
    const { result, stored } = await finished(always(410, { error: 'expired' }));
    expect(stored.task.ending).toBe('succeeded');
    expect(result?.isError).toBeUndefined();
    expect(result?.content[0]?.text).toMatch(/^9\/9\nIts result could not be read: HTTP 410: .*expired/);
  });

  it('that can’t be had for the moment is fetched again', async () => {
    const { result, server } = await finished([always(503, ''), hangUp, always(200, { rows: 3 })]);
    expect(result?.structuredContent).toEqual({ rows: 3 });
    expect(count(server, 'GET /jobs/7/output')).toBe(3);
  });

  it('that can’t be had at all is given up after five tries, with the verdict', async () => {
    const { result, server, stored } = await finished(always(503, { error: 'storage is down' }));
    expect(count(server, 'GET /jobs/7/output')).toBe(5);
    expect(stored.task.ending).toBe('succeeded');
    expect(result?.isError).toBeUndefined();
    expect(result?.content[0]?.text).toMatch(/Its result could not be read: HTTP 503: .*storage is down/);
  });

  it('is the first one: a job that starts again under the same id changes nothing', async () => {
    const again = always(200, { state: 'running', message: 'second run' });
    const { result, stored } = await finished([always(503, ''), always(200, { rows: 3 })], fetched, [
      done,
      again,
    ]);
    expect(stored.task).toMatchObject({ ending: 'succeeded', verdict: 'succeeded' });
    expect(result?.structuredContent).toEqual({ rows: 3 });
    expect(JSON.stringify(result)).not.toContain('second run');
  });

  it('never changes once the task has ended', async () => {
    const service = await finished(always(200, { rows: 3 }));
    service.server.handle(always(200, { state: 'failed' }));
    const seen = service.server.seen.length;
    await service.tasks.follow(service.stored.task);
    await service.tasks.cancel(service.stored.task);
    expect(await service.get(service.stored.task)).toEqual(service.stored);
    expect(service.server.seen).toHaveLength(seen);
  });
});

describe('an ending by the upstream’s word', () => {
  it('of a job that could not be carried out is an error with its message', async () => {
    const { tick, task } = await following(always(200, { state: 'broken', message: 'node lost' }));
    const ended = await tick(task);
    expect(ended.task).toMatchObject({ phase: 'errored', ending: 'upstream_error' });
    expect(outcomeOf(ended).error).toMatchObject({ code: -32603, message: 'node lost' });
  });

  it('of a job that somebody stopped is cancelled, with its message', async () => {
    const { tick, task } = await following(always(200, { state: 'stopped', message: 'stopped by hand' }));
    const ended = await tick(task);
    expect(ended.task).toMatchObject({ phase: 'cancelled', message: 'stopped by hand' });
    expect(ended.outcome).toBe('{}');
  });
});

describe('secrets', () => {
  it('that an upstream puts into the values a task remembers are not shown in its messages', async () => {
    const token = 'tok-0123456789';
    const create = `    create:
      request: POST /jobs
      capture: { id: response.body.id, page: response.body.page }`;
    const service = await startService({
      parts: { ...withToken, create },
      environment: { TOKEN: token },
      handler: routes({
        'POST /jobs': always(201, { id: 7, page: `https://jobs.test/7?key=${token}` }),
        'GET /jobs/7': always(410, { error: token }),
      }),
    });
    const { task } = await service.started();
    const ended = await service.tick(task);
    expect(ended.task.message).toContain('id: 7, page: https://jobs.test/7?key=[redacted]');
    expect(JSON.stringify([ended.task.message, ended.outcome])).not.toContain(token);
  });
});

describe('the adapter of a running task', () => {
  it.each([
    ['was changed', true],
    ['is served no longer', false],
  ])('is its stored text when the file %s', async (_name, served) => {
    const first = await startService({
      handler: routes({ 'POST /jobs': made, 'GET /jobs/7': done, 'GET /v2/jobs/7': always(404, {}) }),
    });
    const { task } = await first.started();
    const second = await startService({
      parts: { status: movedStatus },
      store: first.store,
      clock: first.clock,
      server: first.server,
      served,
    });
    expect(second.adapter.digest).not.toBe(task.digest);
    expect((await second.tick(task)).task.ending).toBe('succeeded');
    expect(count(first.server, 'GET /v2/jobs/7')).toBe(0);
  });

  it('that can’t be loaded any more leaves the task working, says so, and ends it at its deadline', async () => {
    const { store, clock, server, started } = await startService({
      handler: routes({ 'POST /jobs': made, 'GET /jobs/7': done }),
    });
    const { task } = await started();
    const broken = await startService({
      parts: { status: movedStatus },
      store: { ...store, adapterText: async () => undefined },
      clock,
      server,
    });
    const { task: waiting } = await broken.tick(task);
    expect(waiting).toMatchObject({
      stage: 'following',
      message: 'The adapter of this task is no longer stored',
    });
    await broken.tasks.cancel(task);
    expect((await broken.get(task)).task.cancel).toMatchObject({ state: 'requested' });
    await clock.advance(task.deadline - clock.now());
    expect((await broken.tick(task)).task.ending).toBe('timed_out');
  });
});

const movedStatus = `    status:
      request: GET /v2/jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done] }`;
