import { describe, expect, it } from 'vitest';
import type { Poll } from '../../src/drivers/driver.ts';
import type { Handler } from '../helpers/http-server.ts';
import { adapted, always, hangUp, routes, viewWith } from './adapted.ts';

const one = `    cancel:
      request: POST /jobs/\${{ job.id }}/cancel`;

async function cancel(handler: Handler, tool = one, state = 'running') {
  const { upstream, server, poll } = await adapted(
    { tool },
    { handler: routes({ 'GET /jobs/7': always(200, { state }), 'POST /jobs/7/cancel': handler }) },
  );
  const seen: Poll = await poll();
  return { outcome: await upstream.cancel(viewWith(), seen, 0), server };
}

describe('a cancel', () => {
  it.each([200, 202, 204])('is sent when the upstream answers %i', async (status) => {
    expect((await cancel(always(status, ''))).outcome).toEqual({ kind: 'sent' });
  });

  it.each<[string, Handler]>([
    ['409 with its words', always(409, { message: 'already finished' })],
    ['404 with its words', always(404, { message: 'already finished' })],
    ['a redirect with its words', always(302, { message: 'already finished' }, { location: '/x' })],
  ])('is refused by %s', async (_name, handler) => {
    expect((await cancel(handler)).outcome).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('already finished'),
    });
  });

  it.each<[string, Handler]>([
    ['503', always(503, '', { 'retry-after': '5' })],
    ['429', always(429, '')],
    ['401', always(401, '')],
    ['403', always(403, '')],
    ['a closed connection', hangUp],
  ])('is tried again after %s', async (_name, handler) => {
    expect((await cancel(handler)).outcome).toMatchObject({ kind: 'later' });
  });

  it('counts as sent when expect accepts the reply', async () => {
    const accepting = `${one}\n      expect: response.status in [202, 409]`;
    expect((await cancel(always(409, ''), accepting)).outcome).toEqual({ kind: 'sent' });
  });

  it('sends every step whose condition holds on the last status, and only those', async () => {
    const steps = `    cancel:
      - when: response.body.state == "queued"
        request: DELETE /queue/\${{ job.id }}
      - when: response.body.state == "running"
        request: POST /jobs/\${{ job.id }}/cancel`;
    const { outcome, server } = await cancel(always(202, ''), steps);
    expect(outcome).toEqual({ kind: 'sent' });
    expect(server.seen.map(({ method, url }) => `${method} ${url}`).slice(1)).toEqual([
      'POST /jobs/7/cancel',
    ]);
    expect((await cancel(always(202, ''), steps, 'waiting')).outcome).toEqual({ kind: 'inapplicable' });
  });

  it('is known to be impossible without a cancel step', async () => {
    expect((await adapted({})).upstream.plan.canCancel).toBe(false);
    expect((await adapted({ tool: one })).upstream.plan.canCancel).toBe(true);
  });
});
