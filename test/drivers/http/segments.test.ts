// Several path segments from one value, where the adapter says so by the value's type.

import { describe, expect, it } from 'vitest';
import { adapted, always, viewWith } from '../adapted.ts';

async function create(target: string, args: { [name: string]: string }) {
  const { upstream, server } = await adapted(
    {
      create: `    create:
      request: POST ${target}
      capture: { id: response.body.id }`,
    },
    { handler: always(201, { id: 1, parts: ['..', 'admin'] }) },
  );
  const outcome = await upstream.createStep(viewWith({ args, job: {} }), 0);
  return { outcome, url: server.seen[0]?.url };
}

const folders = `/\${{ ("job/" + args.?name.orValue("").split("/").join("/job/")).split("/") }}/build`;

describe('a hole in a path that gives a list', () => {
  it('is as many segments, each of them encoded', async () => {
    const { outcome, url } = await create(folders, { name: 'team a/web?x' });
    expect(outcome).toMatchObject({ kind: 'done' });
    expect(url).toBe('/job/team%20a/job/web%3Fx/build');
  });

  it.each(['../admin', 'a//b', 'a/./b', '/a', 'a/', '%2e%2e/a'])('is refused for %j', async (name) => {
    const { outcome, url } = await create(folders, { name });
    expect(outcome).toMatchObject({ kind: 'refused' });
    expect(url).toBeUndefined();
  });

  it('is refused in the query, and where a reply alone could make it a list', async () => {
    const query = await create(`/jobs?path=\${{ args.?name.orValue("").split("/") }}`, { name: 'a/b' });
    expect(query.outcome).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('no single value'),
    });
    const { poll } = await adapted(
      {
        create: `    create:
      request: POST /jobs
      capture: { id: response.body.id, parts: response.body.parts }`,
        status: `    status:
      request: GET /jobs/\${{ job.parts }}
      state: { of: response.body.state, working: [running], succeeded: [done] }`,
      },
      { handler: always(200, {}) },
    );
    expect((await poll({ job: { id: 1n, parts: ['a', 'b'] } })).observation).toMatchObject({
      kind: 'rejected',
    });
  });
});

describe('the time at which a task was made', () => {
  it('can be sent, and compared with times in replies', async () => {
    const { poll, server } = await adapted(
      {
        status: `    status:
      request: GET /runs
      query: { since: "\${{ task.createdAt }}" }
      state:
        - { phase: succeeded, when: timestamp(response.body.startedAt) >= timestamp(task.createdAt) }
        - { phase: working, when: true }`,
      },
      { handler: always(200, { startedAt: '2031-05-06T09:08:09+02:00' }) },
    );
    expect((await poll()).observation).toMatchObject({ phase: 'succeeded' });
    expect(server.seen[0]?.url).toBe('/runs?since=2031-05-06T07%3A08%3A09.000Z');
  });
});
