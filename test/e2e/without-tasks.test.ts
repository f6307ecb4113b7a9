// Clients that don't speak tasks: the official client of 2026 without the extension, and the one of 2025.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFixtureService } from '../conformance/fixture-service.ts';
import { startTaskferry, type TestTaskferry } from '../helpers/start-taskferry.ts';

const adapter = `version: 1
name: waiting
env: [FIXTURE_URL]
upstream: { driver: http, baseUrl: "\${{ env.FIXTURE_URL }}" }
tools:
${tool('compute', '{ wait: 2s }')}${tool('strict', 'reject')}`;

function tool(name: string, withoutTasks: string): string {
  return `  ${name}:
    description: Computes for some seconds.
    withoutTasks: ${withoutTasks}
    input: { type: object, properties: { seconds: { type: number, default: 0 } } }
    output: { type: object, required: [answer], properties: { answer: { type: string } } }
    create:
      request: POST /jobs
      json: { seconds: "\${{ args.seconds }}", text: "42" }
      capture: { id: response.body.id }
    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done], failed: [failed], cancelled: [cancelled] }
      message: "Job \${{ response.body.id }} is \${{ response.body.state }}"
    result:
      structured: { answer: "\${{ response.body.text }}" }
    timing: { every: 200ms, max: 500ms, timeout: 5m }
`;
}

interface AnyClient {
  callTool(request: { name: string; arguments?: { [name: string]: unknown } }): Promise<unknown>;
  listTools(): Promise<{ tools: { name: string; outputSchema?: unknown }[] }>;
  close(): Promise<void>;
}

const clients: { [name: string]: (url: string) => Promise<AnyClient> } = {
  'client 2.4 of the 2026 era': async (url) => {
    const client = new Client(
      { name: 't', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client as AnyClient;
  },
  'client 2.4 as it is by default': async (url) => {
    const client = new Client({ name: 't', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client as AnyClient;
  },
  'sdk 1.32 of the 2025 era': async (url) => {
    const client = new Client2025({ name: 't', version: '1' });
    await client.connect(new Transport2025(new URL(url)) as never);
    return client as AnyClient;
  },
};

let fixture: Awaited<ReturnType<typeof startFixtureService>>;
let server: TestTaskferry;
beforeAll(async () => {
  fixture = await startFixtureService();
  server = await startTaskferry({ adapters: [adapter], environment: { FIXTURE_URL: fixture.url } });
});
afterAll(async () => {
  await server.close();
  await fixture.close();
});

describe.each(Object.keys(clients))('%s', (name) => {
  let client: AnyClient;
  beforeAll(async () => {
    const connect = clients[name];
    if (connect === undefined) throw new Error(`no client ${name}`);
    client = await connect(server.url);
  });
  afterAll(() => client.close());

  it('lists job tools without an output schema, as a job may outlive the call', async () => {
    const { tools } = await client.listTools();
    expect(tools.map((listed) => [listed.name, listed.outputSchema])).toEqual([
      ['compute', undefined],
      ['strict', undefined],
    ]);
  });

  it('gets the real result of a job that ends within the wait', async () => {
    expect(await client.callTool({ name: 'compute', arguments: { seconds: 0.5 } })).toMatchObject({
      content: [{ type: 'text', text: '{"answer":"42"}' }],
      structuredContent: { answer: '42' },
    });
  });

  it('gets a usable answer, and no error, for a job that outlives the wait', async () => {
    const result = (await client.callTool({ name: 'compute', arguments: { seconds: 60 } })) as {
      isError?: boolean;
      content: { text: string }[];
    };
    expect(result.isError).not.toBe(true);
    const text = result.content[0]?.text;
    expect(text).toContain('compute is still running and goes on without this call');
    expect(text).toMatch(/Last status: Job \d+ is running/);
    expect(text).toMatch(/goes on without this call \(id: \d+\)\./);
  });

  it('is told that a tool which insists on tasks needs them', async () => {
    const answer = client.callTool({ name: 'strict', arguments: {} });
    if (name === 'client 2.4 of the 2026 era') {
      await expect(answer).rejects.toMatchObject({ code: -32021 });
    } else {
      expect(await answer).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining('needs a client that supports MCP tasks') }],
      });
    }
  });
});
