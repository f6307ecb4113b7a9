// Data may have members of any name, also those that every JavaScript object has: constructor, toString and so on.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { json, startHttpServer, type TestServer } from '../helpers/http-server.ts';
import { mcpRequest } from '../helpers/mcp-request.ts';
import { startTaskferry, type TestTaskferry } from '../helpers/start-taskferry.ts';

const adapter = `version: 1
name: names
env: [UPSTREAM]
upstream: { driver: http, baseUrl: "\${{ env.UPSTREAM }}" }
tools:
  constructor:
    description: Has names that every object has.
    input:
      type: object
      properties: { constructor: { type: string }, toString: { type: string }, valueOf: { type: string, default: vv } }
    output: { type: object, properties: { all: {}, hasOwnProperty: { type: string } } }
    confirm:
      - { key: constructor, message: sure, schema: { type: object, properties: { constructor: { type: boolean } } } }
    create:
      request: POST /jobs
      json:
        all: "\${{ args }}"
        text: "\${{ args.?toString.orValue('none') }}"
        sure: "\${{ has(confirm.constructor) && confirm.constructor.?constructor.orValue(false) }}"
      capture:
        id: response.body.id
        constructor: response.body.constructor
        valueOf: response.body.valueOf
    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state.constructor, working: [running], input_required: [gate], succeeded: [done] }
      message: "\${{ job.constructor }} of \${{ response.body.list[1].constructor }}"
    ask:
      - key: constructor
        message: "\${{ string(response.body.list.exists(i, i.?constructor.orValue('') == 'two')) }}"
        schema: { type: object, properties: { constructor: { type: boolean }, toString: { type: string } } }
        onAccept: { request: "POST /jobs/\${{ job.id }}/answer", json: "\${{ answer }}" }
    result:
      structured:
        all: "\${{ response.body }}"
        hasOwnProperty: "\${{ merge(response.body.list[1], {'x': 'y'}).constructor }}"
    timing: { every: 100ms, max: 200ms, timeout: 1m, keep: 1m }
`;

let upstream: TestServer;
let server: TestTaskferry;
beforeAll(async () => {
  let state = 'gate';
  upstream = await startHttpServer((request, response) => {
    if (request.url === '/jobs') return json(response, 201, '{"id":"7","constructor":"builder","valueOf":1}');
    if (request.method === 'POST') state = 'done';
    json(
      response,
      200,
      `{"state":{"constructor":"${state}"},"list":[1,{"constructor":"two"}],"__proto__":{"a":1},"toString":2,"hasOwnProperty":3,"__defineGetter__":{"valueOf":[]}}`,
    );
  });
  server = await startTaskferry({ adapters: [adapter], environment: { UPSTREAM: upstream.origin } });
});
afterAll(async () => {
  await server.close();
  await upstream.close();
});

it('a job is started, followed, asked about and ended with names that every object has', async () => {
  const call = { name: 'constructor', arguments: { constructor: 'A' } };
  const asked = (await mcpRequest(server.url, 'tools/call', call)).body.result;
  expect(Object.keys(asked.inputRequests)).toEqual(['constructor']);
  const answer = { action: 'accept', content: { constructor: true } };
  const { body } = await mcpRequest(server.url, 'tools/call', {
    ...call,
    inputResponses: { constructor: answer },
    requestState: asked.requestState,
  });
  const { taskId } = body.result;
  expect(JSON.parse(upstream.seen[0]?.body ?? '')).toEqual({
    all: { constructor: 'A', valueOf: 'vv' },
    text: 'none',
    sure: true,
  });
  const read = async () => (await mcpRequest(server.url, 'tasks/get', { taskId })).body.result;
  const waiting = await eventually(read, ({ status }) => status === 'input_required');
  const [key = ''] = Object.keys(waiting.inputRequests);
  expect(waiting.inputRequests[key].params.message).toBe('true');
  await mcpRequest(server.url, 'tasks/update', { taskId, inputResponses: { [key]: answer } });
  const ended = await eventually(read, ({ status }) => status === 'completed');
  expect(upstream.seen.find(({ url }) => url.endsWith('/answer'))?.body).toBe('{"constructor":true}');
  expect(ended.statusMessage).toBe('builder of two');
  expect(ended.result.isError).toBeUndefined();
  expect(ended.result.structuredContent.hasOwnProperty).toBe('two');
  expect(JSON.stringify(ended.result.structuredContent.all)).toBe(
    '{"state":{"constructor":"done"},"list":[1,{"constructor":"two"}],"__proto__":{"a":1},"toString":2,"hasOwnProperty":3,"__defineGetter__":{"valueOf":[]}}',
  );
});
