// One server over the conformance fixture's tools, for the tests of the protocol edge in this folder.

import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import { startFixtureService } from '../conformance/fixture-service.ts';
import { mcpRequest, type RawOptions, type RawReply } from '../helpers/mcp-request.ts';
import { startTaskferry, type TestTaskferry } from '../helpers/start-taskferry.ts';

export interface EdgeFixture {
  server(): TestTaskferry;
  request(method: string, params: { [name: string]: unknown }, options?: RawOptions): Promise<RawReply>;
  /** Calls a tool and gives the id of its task. */
  startTask(name: string, args?: object): Promise<string>;
}

/** Starts before the tests of the file and stops after them. @param more adapters beside the conformance one. */
export function useServer(more: readonly string[] = []): EdgeFixture {
  let server: TestTaskferry | undefined;
  let service: Awaited<ReturnType<typeof startFixtureService>> | undefined;
  const running = (): TestTaskferry => {
    if (server === undefined) throw new Error('the server has not started');
    return server;
  };
  beforeAll(async () => {
    service = await startFixtureService();
    server = await startTaskferry({
      adapters: [fileURLToPath(new URL('../conformance/conformance.yaml', import.meta.url)), ...more],
      environment: { FIXTURE_URL: service.url },
    });
  });
  afterAll(async () => {
    await server?.close();
    await service?.close();
  });
  const request: EdgeFixture['request'] = (method, params, options) =>
    mcpRequest(running().url, method, params, options);
  return {
    server: running,
    request,
    async startTask(name, args = {}) {
      const { body } = await request('tools/call', { name, arguments: args });
      if (body.result?.resultType !== 'task') throw new Error(`no task: ${JSON.stringify(body)}`);
      return body.result.taskId;
    },
  };
}
