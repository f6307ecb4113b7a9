// What the task life looks like to a client, where the wire matters.

import { describe, expect, it, onTestFinished } from 'vitest';
import { type AdapterParts, adapterText, always, routes, silence, withToken } from '../drivers/adapted.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Handler, json, startHttpServer } from '../helpers/http-server.ts';
import { mcpRequest } from '../helpers/mcp-request.ts';
import { startTaskferry } from '../helpers/start-taskferry.ts';
import { count } from './service-fixture.ts';

const quick = '    timing: { every: 100ms, max: 200ms, timeout: 1m, keep: 1m }';
const cancelStep = `    cancel: { request: "POST /jobs/\${{ job.id }}/cancel" }`;
const made = always(201, '{"id":7421900188888888881}');
const jobPath = '/jobs/7421900188888888881';

async function serve(handler: Handler, parts: AdapterParts = {}, environment = {}) {
  const upstream = await startHttpServer(handler);
  onTestFinished(() => upstream.close());
  const server = await startTaskferry({
    adapters: [adapterText({ tool: quick, ...parts })],
    environment: { UPSTREAM: upstream.origin, ...environment },
  });
  onTestFinished(() => server.close());
  const call = (options = {}) =>
    mcpRequest(server.url, 'tools/call', { name: 'run', arguments: {} }, options);
  const get = (taskId: string) => mcpRequest(server.url, 'tasks/get', { taskId });
  const ended = async (taskId: string) => {
    const reply = await eventually(
      () => get(taskId),
      ({ body }) => body.result?.status !== 'working',
    );
    return reply.body.result;
  };
  return { upstream, server, call, get, ended };
}

describe('tools/call', () => {
  it('that is refused is an error result with the upstream’s words, and no task', async () => {
    const { call } = await serve(always(422, { message: 'Unexpected inputs provided: ["corr"]' }));
    const { body } = await call();
    expect(body.result).toMatchObject({ resultType: 'complete', isError: true });
    expect(body.result.content[0].text).toMatch(/^run was not started: HTTP 422: .*Unexpected inputs/);
    expect(body.result).not.toHaveProperty('taskId');
  });

  it('whose outcome is unknown is a JSON-RPC error on the call itself', async () => {
    const { call } = await serve(always(502, ''));
    expect((await call()).body.error).toMatchObject({
      code: -32603,
      message: expect.stringContaining('a job may exist upstream'),
      data: { reason: 'outcome_unknown' },
    });
  });

  it('of a job that ends within `settle` is answered with the result, without a task', async () => {
    const tool = `    timing: { every: 100ms, settle: 5s, timeout: 1m, keep: 1m }
    result: { structured: { id: "\${{ job.id }}" } }`;
    const { call } = await serve(
      routes({
        'POST /jobs': made,
        [`GET ${jobPath}`]: [always(200, { state: 'running' }), always(200, { state: 'done' })],
      }),
      { tool },
    );
    const { result } = (await call()).body;
    expect(result).toMatchObject({
      resultType: 'complete',
      content: [{ text: '{"id":7421900188888888881}' }],
    });
    expect(result).not.toHaveProperty('taskId');
  });

  it('of a job that failed within `settle` is an error result', async () => {
    const tool = '    timing: { every: 100ms, settle: 5s, timeout: 1m, keep: 1m }';
    const failed = always(200, { state: 'failed', message: '3 tests failed' });
    const { call } = await serve(routes({ 'POST /jobs': made, [`GET ${jobPath}`]: failed }), { tool });
    expect((await call()).body.result).toMatchObject({
      isError: true,
      content: [{ text: '3 tests failed' }],
    });
  });
});

describe('tasks/get', () => {
  it('shows a failed job as completed with isError, and its detail', async () => {
    const { call, ended } = await serve(
      routes({
        'POST /jobs': made,
        [`GET ${jobPath}`]: always(200, { state: 'failed', message: 'line 4: bad flag' }),
      }),
    );
    expect(await ended((await call()).body.result.taskId)).toMatchObject({
      status: 'completed',
      result: { isError: true, content: [{ text: 'line 4: bad flag' }] },
    });
  });

  it('shows clean words only, whatever the upstream sends', async () => {
    const hostile = `\u001b]0;x\u0007\u001b[31m\u202e${'ab'.repeat(5_000)}\u200b secret-token-1`;
    const { call, get } = await serve(
      routes({ 'POST /jobs': made, [`GET ${jobPath}`]: always(200, { state: 'running', message: hostile }) }),
      withToken,
      { TOKEN: 'secret-token-1' },
    );
    const { taskId } = (await call()).body.result;
    const { body } = await eventually(
      () => get(taskId),
      (reply) => reply.body.result.statusMessage !== undefined,
    );
    expect(body.result.statusMessage).toBe(`${'ab'.repeat(249)}a…`);
  });

  it('never shows an ended task without its payload, however closely it is watched', async () => {
    let polls = 0;
    const { call, get } = await serve((request, response, raw) => {
      if (request.method === 'POST') return made(request, response, raw);
      json(response, 200, { state: ++polls < 3 ? 'running' : 'done', message: `look ${polls}` });
    });
    const { taskId } = (await call()).body.result;
    for (;;) {
      const { result } = (await get(taskId)).body;
      expect(result.status === 'completed').toBe(result.result !== undefined);
      if (result.status !== 'completed') continue;
      expect(result).toMatchObject({ statusMessage: 'look 3', result: { content: [{ text: 'look 3' }] } });
      break;
    }
  });

  it('resolves the very moment the call is answered', async () => {
    const { call, get } = await serve(
      routes({ 'POST /jobs': made, [`GET ${jobPath}`]: always(200, { state: 'running' }) }),
    );
    for (let round = 0; round < 20; round++) {
      const { taskId } = (await call()).body.result;
      expect((await get(taskId)).body.result.status).toBe('working');
    }
  });
});

describe('a client that disconnects while the job is being created', () => {
  async function leave(onDisconnect: string) {
    const gone = new AbortController();
    const parts = { tool: `${quick}\n${cancelStep}\n    onDisconnect: ${onDisconnect}` };
    const { upstream, call } = await serve((request, response, raw) => {
      if (request.method === 'GET') return json(response, 200, { state: 'running' });
      if (request.url.endsWith('/cancel')) return json(response, 202, '');
      gone.abort();
      // The reply comes well after the server has seen the client go.
      setTimeout(() => made(request, response, raw), 300);
    }, parts);
    await expect(call({ signal: gone.signal })).rejects.toThrow();
    return upstream;
  }

  it('changes nothing by default: the job is followed', async () => {
    const upstream = await leave('keep');
    await eventually(
      () => count(upstream, `GET ${jobPath}`),
      (polls) => polls >= 3,
    );
    expect(count(upstream, 'POST /jobs')).toBe(1);
    expect(count(upstream, `POST ${jobPath}/cancel`)).toBe(0);
  });

  it('cancels the job once it exists, where the adapter says so', async () => {
    const upstream = await leave('cancel');
    await eventually(
      () => count(upstream, `POST ${jobPath}/cancel`),
      (sent) => sent === 1,
    );
    expect(count(upstream, 'POST /jobs')).toBe(1);
  });
});

it('stops within its grace while an upstream never answers', async () => {
  const { server, call } = await serve(silence);
  const lost = call().catch(() => undefined);
  const before = performance.now();
  await server.close(100);
  await lost;
  expect(performance.now() - before).toBeLessThan(5_000);
});
