// Jobs are followed to their ends however busy their adapter is with new calls.

import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { json, startHttpServer } from '../helpers/http-server.ts';
import { mcpRequest } from '../helpers/mcp-request.ts';
import { startTaskferry } from '../helpers/start-taskferry.ts';

const adapter = (limits: string): string => `version: 1
name: busy
env: [UPSTREAM]
limits: ${limits}
upstream: { driver: http, baseUrl: "\${{ env.UPSTREAM }}" }
tools:
  run:
    description: Runs a job.
    create: { request: POST /jobs, capture: { id: response.body.id } }
    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done] }
    timing: { every: 100ms, timeout: 30s }
  look:
    description: Answers at once.
    call: { request: GET /slow }
`;

describe.each([
  ['every place', '{ concurrency: 1 }'],
  ['its whole rate', '{ concurrency: 8, rate: { calls: 5, per: 500ms } }'],
])('an adapter whose callers use %s', (_name, limits) => {
  it('still follows its jobs to their end', async () => {
    const upstream = await startHttpServer((request, response) => {
      if (request.method === 'POST') json(response, 201, { id: 1 });
      else if (request.url === '/slow') setTimeout(() => json(response, 200, {}), 50);
      else json(response, 200, { state: 'done' });
    });
    const server = await startTaskferry({
      adapters: [adapter(limits)],
      environment: { UPSTREAM: upstream.origin },
    });
    onTestFinished(() => server.close(0));
    let busy = true;
    const callers = Array.from({ length: 4 }, async () => {
      while (busy) await mcpRequest(server.url, 'tools/call', { name: 'look', arguments: {} });
    });
    const { body } = await mcpRequest(server.url, 'tools/call', { name: 'run', arguments: {} });
    const { taskId } = body.result;
    const ended = await eventually(
      async () => (await mcpRequest(server.url, 'tasks/get', { taskId })).body.result.status,
      (status) => status !== 'working',
      15_000,
    );
    busy = false;
    await Promise.all(callers);
    expect(ended).toBe('completed');
  });
});
