// Removing what a job has left upstream: after every end, never changing it, and not for ever.

import { describe, expect, it } from 'vitest';
import { always, routes } from '../drivers/adapted.ts';
import type { Handler } from '../helpers/http-server.ts';
import { count, hasEnded, outcomeOf, startService } from './service-fixture.ts';

const twoSteps = `    create:
      - { step: upload, request: PUT /files, text: x, repeatable: true, capture: { file: response.body.file } }
      - { step: start, request: POST /jobs, json: { key: "\${{ task.key }}" }, capture: { id: response.body.id } }`;
const removing = `    cleanup:
      when: has(job.file)
      request: DELETE /files/\${{ job.file }}
      query: { after: "\${{ outcome }}" }
    timing: { timeout: 10m }`;
const done = always(200, { state: 'done', message: '9/9' });

async function cleaning(
  polls: Handler | readonly Handler[],
  removal: Handler | readonly Handler[] = always(204, ''),
  start: Handler = always(201, { id: 7 }),
) {
  return startService({
    parts: { create: twoSteps, tool: removing },
    handler: routes({
      'PUT /files': always(201, { file: 'f1' }),
      'POST /jobs': start,
      'GET /jobs/7': polls,
      'DELETE /files/f1': removal,
    }),
  });
}

describe('a clean-up', () => {
  it.each([
    ['succeeded', done],
    ['failed', always(200, { state: 'failed', message: '' })],
    ['cancelled', always(200, { state: 'stopped', message: '' })],
    ['errored', always(410, {})],
  ])('is made once after a job that %s, and is told how it ended', async (ending, polls) => {
    const service = await cleaning(polls);
    const { task } = await service.started();
    await service.until(task, hasEnded);
    const cleaned = await service.tick(task);
    expect(service.server.seen.at(-1)).toMatchObject({ method: 'DELETE', url: `/files/f1?after=${ending}` });
    expect(cleaned.schedule).toBeUndefined();
    expect(cleaned.task.cleanup).toBeUndefined();
  });

  it('changes nothing that a client sees, whether it works or not', async () => {
    for (const removal of [always(204, ''), always(500, '')]) {
      const service = await cleaning(done, removal);
      const { task } = await service.started();
      const ended = await service.until(task, hasEnded);
      const after = await service.tick(task);
      expect(after.outcome).toBe(ended.outcome);
      expect(outcomeOf(after).result?.content[0]?.text).toBe('9/9');
      for (const field of ['stage', 'phase', 'message', 'updatedAt', 'ending'] as const)
        expect(after.task[field]).toBe(ended.task[field]);
    }
  });

  it('is tried again, at most five times', async () => {
    const service = await cleaning(done, always(503, ''));
    const { task } = await service.started();
    await service.until(task, hasEnded);
    for (let i = 1; i <= 4; i++) expect((await service.tick(task)).task.cleanup?.tries).toBe(i);
    expect((await service.tick(task)).schedule).toBeUndefined();
    expect(count(service.server, 'DELETE /files/f1')).toBe(5);
  });

  it('takes what is gone already for removed', async () => {
    const service = await cleaning(done, always(404, {}));
    const { task } = await service.started();
    await service.until(task, hasEnded);
    expect((await service.tick(task)).schedule).toBeUndefined();
  });

  it('follows a create that is refused after its first step', async () => {
    const service = await cleaning(done, always(204, ''), always(422, { error: 'no' }));
    expect(await service.start()).toMatchObject({ kind: 'refused' });
    expect(service.server.seen.at(-1)).toMatchObject({ method: 'DELETE', url: '/files/f1?after=refused' });
  });

  it('is made although a call was answered directly', async () => {
    const service = await startService({
      parts: { create: twoSteps, tool: removing.replace('timeout: 10m', 'timeout: 10m, settle: 2s') },
      handler: routes({
        'PUT /files': always(201, { file: 'f1' }),
        'POST /jobs': always(201, { id: 7 }),
        'GET /jobs/7': done,
        'DELETE /files/f1': always(204, ''),
      }),
    });
    const { task, schedule } = await service.started();
    expect(task.stage).toBe('ended');
    expect(schedule?.dueAt).toBeLessThanOrEqual(service.clock.now());
    expect((await service.tick(task)).schedule).toBeUndefined();
    expect(count(service.server, 'DELETE /files/f1')).toBe(1);
  });
});
