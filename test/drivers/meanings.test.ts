// What an adapter says of replies whose status alone would say something else.

import { describe, expect, it } from 'vitest';
import type { Handler } from '../helpers/http-server.ts';
import { adapted, always, createWith, plainCreate, routes, viewWith } from './adapted.ts';

const fresh = viewWith({ job: {} });
const withStatus = (fields: string): string => `    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done] }
      ${fields}`;

async function create(handler: Handler, fields: string, top = '') {
  const { upstream } = await adapted({ top, create: createWith(fields) }, { handler });
  return upstream.createStep(fresh, 0);
}

describe('a create step', () => {
  it('is refused by a 200 and by a 500 that the adapter calls a certain no', async () => {
    const fields = 'refused: response.status in [200, 500]';
    for (const status of [200, 500]) {
      expect(await create(always(status, { message: 'nothing to build' }), fields)).toMatchObject({
        kind: 'refused',
        judged: true,
        message: expect.stringContaining(`HTTP ${status}`),
      });
    }
    expect(await create(always(201, { id: 1 }), fields)).toEqual({ kind: 'done', job: { id: 1n } });
  });

  it('is tried later after a reply that the adapter says to repeat', async () => {
    const fields = 'retry: response.body.?busy.orValue(false)';
    expect(await create(always(200, { busy: true }), fields)).toMatchObject({ kind: 'later' });
    expect(await create(always(201, { id: 1 }), fields)).toMatchObject({ kind: 'done' });
  });

  it('tells the reason that the adapter finds in the body, else the body itself', async () => {
    const top = 'reason: response.body.errors[0].message';
    const told = await create(always(422, { errors: [{ message: 'no such branch' }], trace: 'x' }), '', top);
    expect(told).toMatchObject({ message: 'HTTP 422: no such branch' });
    const other = await create(always(400, { detail: 'bad flag' }), '', top);
    expect(other).toMatchObject({ message: 'HTTP 400: {"detail":"bad flag"}' });
    const own = await create(
      always(422, { errors: [{ message: 'a' }], b: 'b' }),
      'reason: response.body.b',
      top,
    );
    expect(own).toMatchObject({ message: 'HTTP 422: b' });
  });

  it('never tells a secret that the reason quotes', async () => {
    const { upstream } = await adapted(
      {
        top: 'secrets: [TOKEN]\nreason: response.body.message',
        upstream: `  auth: { bearer: "\${{ secrets.TOKEN }}" }`,
      },
      {
        handler: always(403, { message: 'token fake-token-123456 is not allowed' }),
        environment: { TOKEN: 'fake-token-123456' },
      },
    );
    expect(await upstream.createStep(fresh, 0)).toMatchObject({
      message: 'HTTP 403: token [redacted] is not allowed',
    });
  });

  it('goes on without an optional capture, and is in doubt without any other', async () => {
    const captures = plainCreate.replace(
      '{ id: response.body.id }',
      '{ id: response.body.id, "number?": response.body.?number }',
    );
    const made = async (reply: object) => {
      const { upstream } = await adapted({ create: captures }, { handler: always(201, reply) });
      return upstream.createStep(fresh, 0);
    };
    expect(await made({ id: 1, number: 9 })).toEqual({ kind: 'done', job: { id: 1n, number: 9n } });
    expect(await made({ id: 1 })).toEqual({ kind: 'done', job: { id: 1n } });
    expect(await made({ number: 9 })).toMatchObject({ kind: 'doubtful' });
  });

  it('that only reads may be repeated without a word in the adapter', async () => {
    const { upstream } = await adapted({
      create: plainCreate.replace('POST /jobs', 'GET /jobs/7').replace(/ {6}json.*\n/, ''),
    });
    expect(upstream.plan.createSteps[0]?.recovery.repeat).toBe(true);
    const { upstream: posting } = await adapted({});
    expect(posting.plan.createSteps[0]?.recovery.repeat).toBe(false);
  });
});

describe('a status step', () => {
  it('takes a reply for a missing job when the adapter says so, whatever its status', async () => {
    const fields = 'missing: response.body.?error.orValue("") == "no such job"';
    for (const status of [200, 500]) {
      const { poll } = await adapted(
        { status: withStatus(fields) },
        { handler: always(status, { error: 'no such job' }) },
      );
      expect((await poll()).observation).toMatchObject({ kind: 'missing' });
    }
  });

  it('reads again after a reply that the adapter says to repeat', async () => {
    const { poll } = await adapted(
      { status: withStatus('retry: response.status == 404') },
      { handler: always(404, { message: 'not there yet' }) },
    );
    expect((await poll()).observation).toMatchObject({ kind: 'unreachable' });
  });

  it('is left when its captures but the optional ones have a value', async () => {
    const stages = `    status:
      - stage: queue
        request: GET /queue/\${{ job.id }}
        capture: { run: response.body.?run, "why?": response.body.?why }
        state: { working: true }
      - stage: run
        request: GET /runs/\${{ job.run }}
        state: { of: response.body.state, working: [running], succeeded: [done] }`;
    const { poll } = await adapted(
      { status: stages },
      {
        handler: routes({
          'GET /queue/7': always(200, { run: 3 }),
          'GET /runs/3': always(200, { state: 'done' }),
        }),
      },
    );
    expect((await poll()).observation).toMatchObject({
      kind: 'status',
      phase: 'succeeded',
      job: { run: 3n },
    });
  });
});

describe('other steps', () => {
  it('cancel again after a reply that the adapter says to repeat', async () => {
    const { upstream, poll } = await adapted(
      {
        tool: `    cancel:
      request: POST /jobs/\${{ job.id }}/cancel
      retry: response.status == 409`,
      },
      {
        handler: routes({
          'GET /jobs/7': always(200, { state: 'running' }),
          'POST /jobs/7/cancel': always(409, {}),
        }),
      },
    );
    expect(await upstream.cancel(viewWith(), await poll(), 0)).toMatchObject({ kind: 'later' });
  });

  it('find nothing where the adapter says that there is no job', async () => {
    const { upstream } = await adapted(
      {
        create: createWith(`find:
        request: GET /jobs
        query: { key: "\${{ task.key }}" }
        missing: response.status == 400
        capture: { id: response.body.id }`),
      },
      { handler: always(400, { error: 'unknown key' }) },
    );
    expect(await upstream.find(fresh, 0)).toEqual({ kind: 'none' });
  });
});
