import { describe, expect, it } from 'vitest';
import { always, createWith, routes, silence } from '../drivers/adapted.ts';
import type { Handler } from '../helpers/http-server.ts';
import { count, hasEnded, outcomeOf, startService } from './service-fixture.ts';

const timing = (more = '') => `    timing: { timeout: 10m, keep: 1h${more} }`;
const cancelling = `    cancel: { request: "POST /jobs/\${{ job.id }}/cancel" }
${timing(', onTimeout: cancel')}`;
const made = always(201, { id: 7 });
const running = always(200, { state: 'running', message: '1/9' });
const done = always(200, { state: 'done', message: '9/9' });
const minute = 60_000;

async function following(
  polls: Handler | readonly Handler[],
  tool: string,
  cancel: Handler = always(202, ''),
) {
  const service = await startService({
    parts: { tool },
    handler: routes({ 'POST /jobs': made, 'GET /jobs/7': polls, 'POST /jobs/7/cancel': cancel }),
  });
  return { ...service, task: (await service.started()).task };
}

describe('the deadline', () => {
  it.each<[string, Handler]>([
    ['runs', running],
    ['can’t be reached', always(503, '')],
    ['can’t be found for want of a credential', always(401, '')],
  ])('ends a task whose job %s, never before, and says that it may still run', async (_name, polls) => {
    const service = await following(polls, timing());
    const ended = await service.until(service.task, hasEnded);
    expect(service.clock.now() - service.task.createdAt).toBe(10 * minute);
    expect(ended.task).toMatchObject({ phase: 'errored', ending: 'timed_out' });
    expect(outcomeOf(ended).error).toEqual({
      code: -32603,
      message: 'timed out after 10m; the job may still run (id: 7)',
      data: { reason: 'timed_out' },
    });
    expect(ended.schedule).toBeUndefined();
    expect(count(service.server, 'POST /jobs/7/cancel')).toBe(0);
  });

  it('cancels the job as well when the adapter says so', async () => {
    const service = await following(running, cancelling);
    const ended = await service.until(service.task, hasEnded);
    expect(ended.task.ending).toBe('timed_out');
    expect(count(service.server, 'POST /jobs/7/cancel')).toBe(1);
  });

  it('does not cancel a job that turns out to have ended: its outcome counts', async () => {
    const service = await following(running, cancelling);
    await service.until(service.task, () => service.clock.now() > service.task.deadline - minute);
    service.server.handle(routes({ 'GET /jobs/7': done }));
    await service.clock.advance(service.task.deadline - service.clock.now());
    expect((await service.tick(service.task)).task).toMatchObject({ ending: 'succeeded', message: '9/9' });
    expect(count(service.server, 'POST /jobs/7/cancel')).toBe(0);
  });

  it('is kept to while a poll gets no answer, or has to wait for its turn', async () => {
    const service = await startService({
      parts: { tool: timing(), upstream: '  timeouts: { headers: 10m }' },
      handler: routes({ 'POST /jobs': made, 'GET /jobs/7': silence }),
    });
    const { task } = await service.started();
    const ended = await service.passing(service.until(task, hasEnded));
    expect(ended.task.ending).toBe('timed_out');
    expect(service.clock.now()).toBeLessThan(task.deadline + minute);
  });

  it('is kept to when the upstream does not answer the last cancel', async () => {
    const parts = { tool: cancelling, upstream: '  timeouts: { headers: 5m }' };
    const service = await startService({
      parts,
      handler: routes({ 'POST /jobs': made, 'GET /jobs/7': running, 'POST /jobs/7/cancel': silence }),
    });
    const { task } = await service.started();
    const ended = await service.passing(service.until(task, hasEnded));
    expect(ended.task.ending).toBe('timed_out');
    expect(service.clock.now()).toBeLessThan(task.deadline + minute);
  });

  it('ends also a task of which it is not known whether its job exists', async () => {
    const service = await startService({
      parts: { create: createWith('idempotency: { header: Idempotency-Key }'), tool: timing() },
      handler: always(503, ''),
    });
    const { task } = await service.started();
    expect((await service.until(task, hasEnded)).task.ending).toBe('timed_out');
  });

  it('keeps the verdict of a job that has ended while its result can’t be had', async () => {
    const tool = `    result: { fetch: { request: "GET /output" }, text: "\${{ response.body }}" }
    timing: { timeout: 6s, keep: 1h, every: 2s }`;
    const service = await startService({
      parts: { tool },
      handler: routes({ 'POST /jobs': made, 'GET /jobs/7': done, 'GET /output': always(503, '') }),
    });
    const { task } = await service.started();
    const ended = await service.until(task, hasEnded);
    expect(ended.task.ending).toBe('succeeded');
    expect(service.clock.now()).toBeLessThanOrEqual(task.deadline + 1_000);
    expect(outcomeOf(ended).result?.content[0]?.text).toMatch(
      /^9\/9\nIts result could not be read: HTTP 503/,
    );
  });
});

describe('the record', () => {
  it('is purged an hour after the deadline, as `keep` says, and not before', async () => {
    const { tick, task, store, clock } = await following(done, timing());
    expect(task.expiresAt - task.createdAt).toBe(70 * minute);
    await tick(task);
    expect(await store.purge(task.expiresAt - 1, 10)).toBe(0);
    expect((await store.get(task))?.task.ending).toBe('succeeded');
    await clock.advance(task.expiresAt - clock.now());
    expect(await store.purge(clock.now(), 10)).toBe(1);
    expect(await store.get(task)).toBeUndefined();
    expect(await store.adapterDigests()).toEqual([]);
  });

  it('of a job that was answered directly is kept as long', async () => {
    const { task, store } = await following(done, `    timing: { timeout: 10m, keep: 1h, settle: 1s }`);
    expect(task).toMatchObject({ stage: 'ended', expiresAt: task.createdAt + 70 * minute });
    expect(await store.purge(task.expiresAt - 1, 10)).toBe(0);
  });
});
