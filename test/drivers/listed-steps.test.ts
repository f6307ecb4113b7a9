// Lists of steps: requests for each item, optional ones, and replies read by the name of their step.

import { describe, expect, it } from 'vitest';
import { adapted, always, hangUp, routes, viewWith } from './adapted.ts';

/** A status whose rules and message read what it fetches. */
function status(fetch: string): string {
  const failed = fetch.includes('step: children')
    ? `- { phase: failed, when: 'fetched.children.exists(c, c.body.state == "failed")' }`
    : '';
  const text = fetch.includes('step: parts')
    ? 'fetched.?parts.?body.?text.orValue(response.body.state)'
    : 'response.body.state';
  return `    status:
      request: GET /jobs/\${{ job.id }}
      fetch:
${fetch}
      state:
        ${failed}
        - { phase: succeeded, when: response.body.state == "done" }
        - { phase: working, when: true }
      message: "\${{ ${text} }}"`;
}

const parts = `        - step: parts
          request: GET /jobs/\${{ job.id }}/parts`;
const children = `        - step: children
          each: response.body.children
          request: GET /children/\${{ item }}`;
const running = always(200, { state: 'running', children: [] });

describe('further requests of a status', () => {
  it('are read as fetched.<step>, beside the reply of the status itself', async () => {
    const { poll, server } = await adapted(
      { status: status(`${parts}\n${children}`) },
      { handler: routes({ 'GET /jobs/7': running, 'GET /jobs/7/parts': always(200, { text: '3 of 9' }) }) },
    );
    expect((await poll()).observation).toMatchObject({ phase: 'working', message: '3 of 9' });
    expect(server.seen.map(({ url }) => url)).toEqual(['/jobs/7', '/jobs/7/parts']);
  });

  it('are made once for each item', async () => {
    const { poll, server } = await adapted(
      { status: status(children) },
      {
        handler: routes({
          'GET /jobs/7': always(200, { state: 'done', children: [1, 2] }),
          'GET /children/1': always(200, { state: 'done' }),
          'GET /children/2': always(200, { state: 'failed' }),
        }),
      },
    );
    expect((await poll()).observation).toMatchObject({ phase: 'failed' });
    expect(server.seen.map(({ url }) => url)).toEqual(['/jobs/7', '/children/1', '/children/2']);
  });

  it.each([
    ['a job that the status itself has just shown is not lost by a 404', always(404, {}), 'rejected'],
    ['a 503 is read again', always(503, ''), 'unreachable'],
    ['a closed connection is read again', hangUp, 'unreachable'],
  ])('leave the status unknown when one fails: %s', async (_name, handler, kind) => {
    const { poll } = await adapted(
      { status: status(parts) },
      { handler: routes({ 'GET /jobs/7': running, 'GET /jobs/7/parts': handler }) },
    );
    expect((await poll()).observation).toMatchObject({ kind });
  });

  it('can be done without when they are optional', async () => {
    const { poll } = await adapted(
      { status: status(`${parts}\n          optional: true`) },
      { handler: routes({ 'GET /jobs/7': running, 'GET /jobs/7/parts': always(404, {}) }) },
    );
    expect((await poll()).observation).toMatchObject({ kind: 'status', message: 'running' });
  });

  it('are left out when their condition does not hold', async () => {
    const { poll, server } = await adapted(
      { status: status(`${parts}\n          when: response.body.state == "waiting"`) },
      { handler: routes({ 'GET /jobs/7': running }) },
    );
    expect((await poll()).observation).toMatchObject({ kind: 'status', message: 'running' });
    expect(server.seen).toHaveLength(1);
  });

  it('are refused for more items than the limit, naming the step', async () => {
    const many = Array.from({ length: 101 }, (_, i) => i);
    const { poll } = await adapted(
      { status: status(children) },
      { handler: routes({ 'GET /jobs/7': always(200, { state: 'running', children: many }) }) },
    );
    expect((await poll()).observation).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('each of children gives 101 items, at most 100'),
    });
  });

  it('end the stage by their captures', async () => {
    const stages = `    status:
      - stage: queue
        request: GET /queue/\${{ job.id }}
        fetch:
          - step: builds
            request: GET /queue/\${{ job.id }}/builds
            capture: { build: "response.body[?0].?id" }
        state: { working: true }
      - stage: build
        request: GET /builds/\${{ job.build }}
        state: { of: response.body.state, working: [running], succeeded: [done] }`;
    let builds: object[] = [];
    const { poll } = await adapted(
      { status: stages },
      {
        handler: routes({
          'GET /queue/7': always(200, {}),
          'GET /queue/7/builds': (...exchange) => always(200, builds)(...exchange),
          'GET /builds/5': always(200, { state: 'done' }),
        }),
      },
    );
    expect((await poll()).observation).toMatchObject({ phase: 'working', statusStage: 0 });
    builds = [{ id: 5 }];
    expect((await poll()).observation).toMatchObject({
      phase: 'succeeded',
      statusStage: 1,
      job: { build: 5n },
    });
  });
});

describe('a status stage', () => {
  it('is passed over where what it would capture is there already', async () => {
    const stages = `    status:
      - stage: search
        when: "!has(job.run)"
        request: GET /search
        capture: { run: response.body.id }
        state: { working: true }
      - stage: run
        request: GET /runs/\${{ job.run }}
        state: { of: response.body.state, working: [running], succeeded: [done] }`;
    const create = `    create:
      request: POST /jobs
      capture: { id: response.body.id, "run?": response.body.?run }`;
    const { poll, server } = await adapted(
      { create, status: stages },
      { handler: routes({ 'GET /runs/3': always(200, { state: 'done' }) }) },
    );
    expect((await poll({ job: { id: 7n, run: 3n } })).observation).toMatchObject({ phase: 'succeeded' });
    expect(server.seen.map(({ url }) => url)).toEqual(['/runs/3']);
  });
});

describe('a cancel of several steps', () => {
  const cancel = `    cancel:
      - step: parts
        request: GET /jobs/\${{ job.id }}/parts
      - each: fetched.parts.body.items.filter(p, p.state == "running")
        request: POST /parts/\${{ item.id }}/cancel`;
  const cancelled = async (items: object[]) => {
    const { upstream, poll, server } = await adapted(
      { tool: cancel },
      {
        handler: routes({
          'GET /jobs/7': always(200, { state: 'running' }),
          'GET /jobs/7/parts': always(200, { items }),
          'POST /parts/2/cancel': always(202, ''),
          'POST /parts/3/cancel': always(202, ''),
        }),
      },
    );
    const outcome = await upstream.cancel(viewWith(), await poll(), 0);
    return { outcome, posted: server.seen.filter(({ method }) => method === 'POST').map(({ url }) => url) };
  };

  it('reads what there is to cancel, and cancels each of it', async () => {
    const { outcome, posted } = await cancelled([
      { id: 1, state: 'done' },
      { id: 2, state: 'running' },
      { id: 3, state: 'running' },
    ]);
    expect(outcome).toEqual({ kind: 'sent' });
    expect(posted).toEqual(['/parts/2/cancel', '/parts/3/cancel']);
  });

  it('counts as nothing sent when there is nothing to cancel', async () => {
    const { outcome, posted } = await cancelled([{ id: 1, state: 'done' }]);
    expect(outcome).toEqual({ kind: 'inapplicable' });
    expect(posted).toEqual([]);
  });
});

describe('a result of several replies', () => {
  const result = `    result:
      fetch:
        - step: files
          request: GET /jobs/\${{ job.id }}/files
        - step: log
          optional: true
          request: GET /jobs/\${{ job.id }}/log
          read: text
        - step: contents
          each: fetched.files.body
          request: GET /files/\${{ item }}
          read: text
      text: >-
        \${{ fetched.contents.map(c, c.body).join("+") }} \${{ has(fetched.log) ? fetched.log.body : "no log" }}`;

  it('reads each by the name of its step', async () => {
    const { upstream, poll } = await adapted(
      { tool: result },
      {
        handler: routes({
          'GET /jobs/7': always(200, { state: 'done' }),
          'GET /jobs/7/files': always(200, [1, 2]),
          'GET /jobs/7/log': always(404, 'gone'),
          'GET /files/1': always(200, 'one'),
          'GET /files/2': always(200, 'two'),
        }),
      },
    );
    expect(await upstream.result(viewWith(), 'succeeded', await poll())).toMatchObject({
      kind: 'ready',
      result: { text: 'one+two no log' },
    });
  });
});

describe('a call of several steps', () => {
  it('makes its result from the replies of all of them', async () => {
    const { upstream } = await adapted(
      {
        create: '',
        status: `    call:
      - step: list
        request: GET /list
      - step: items
        each: fetched.list.body
        request: GET /items/\${{ item }}`,
        tool: `    result:
      text: >-
        \${{ fetched.items.map(i, i.body.name).join(", ") }}`,
      },
      {
        handler: routes({
          'GET /list': always(200, [4, 5]),
          'GET /items/4': always(200, { name: 'a' }),
          'GET /items/5': always(200, { name: 'b' }),
        }),
      },
    );
    expect(await upstream.call(viewWith({ job: {} }))).toMatchObject({ isError: false, text: 'a, b' });
  });
});
