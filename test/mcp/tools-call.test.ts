import { describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { modernRequest } from '../helpers/mcp-request.ts';
import { useServer } from './fixture.ts';

const big = '12345678901234567890';
const extra = `version: 1
name: edge
env: [FIXTURE_URL]
upstream: { driver: http, baseUrl: "\${{ env.FIXTURE_URL }}" }
tools:
  typed:
    description: Has typed arguments.
    input:
      type: object
      additionalProperties: false
      required: [count]
      properties:
        count: { type: integer, maximum: 10 }
        factor: { type: number, default: 2 }
        tags: { type: array, items: { type: string } }
    call:
      request: GET /greet
      query: { name: "\${{ string(args.count) }}" }
    result:
      structured: { doubled: "\${{ args.count * 2 }}", id: "\${{ ${big.slice(0, 18)} }}" }
  asked:
    description: Asks before it starts.
    input: { type: object, properties: { target: { type: string, default: test } } }
    confirm:
      - key: sure
        when: args.target == "production"
        message: "Really to \${{ args.target }}?"
        schema: { type: object, required: [yes], properties: { yes: { type: boolean }, times: { type: integer } } }
    create:
      request: POST /jobs
      json: { seconds: 60, text: "\${{ args.target }}" }
      capture: { id: response.body.id }
    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done], cancelled: [cancelled] }
    cancel: { request: "POST /jobs/\${{ job.id }}/cancel" }
    timing: { every: 200ms, max: 1s, timeout: 5m, keep: 5m }
  plain_asked:
    description: Asks before it calls.
    confirm:
      - key: sure
        message: Really?
        schema: { type: object, properties: { yes: { type: boolean } } }
    call: { request: GET /greet, query: { name: x } }
    result: { text: called }
  moving:
    description: Shows progress.
    withoutTasks: { wait: 3s }
    input: { type: object, properties: {} }
    create:
      request: POST /jobs
      json: { seconds: 1 }
      capture: { id: response.body.id }
    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done] }
      message: "\${{ response.body.state }}"
    timing: { every: 200ms, max: 1s, timeout: 5m, keep: 5m }
`;

/** A list in a list, `levels` deep. */
function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}

const { server, request } = useServer([extra]);
const call = (name: string, args: object = {}, options = {}) =>
  request('tools/call', { name, arguments: args }, options);

describe('arguments', () => {
  it.each([
    ['a missing one', {}, /count/],
    ['a wrong type', { count: 'three' }, /count.*integer/],
    ['one out of range', { count: 11 }, /count.*10/],
    [
      'one the schema does not have',
      { count: 1, cuont: 2 },
      /there is no argument "cuont" \(it takes count, factor, tags\)/,
    ],
    [
      'a whole number that JSON clients change',
      { count: Number(big) },
      /count is a whole number beyond 2\^53/,
    ],
    ['such a number deep inside', { count: 1, tags: [2 ** 60] }, /tags\.0 .*string/],
    ['a number that is none', { count: 1, factor: Number('1e400') }, /factor/],
    [
      'more values than a call may hold',
      { count: 1, tags: Array.from({ length: 60_000 }, () => 'x') },
      /more than 50000 values/,
    ],
    ['lists in lists in lists', { count: 1, tags: nested(70) }, /nested deeper than 64 levels/],
  ])('are refused as a result the model can read: %s', async (_what, args, message) => {
    const { body } = await call('typed', args);
    expect(body.result).toMatchObject({ isError: true, resultType: 'complete' });
    expect(body.result.content[0].text).toMatch(/^Invalid arguments for typed: /);
    expect(body.result.content[0].text).toMatch(message);
  });

  it('get their defaults, and integers stay whole numbers', async () => {
    const { body } = await call('typed', { count: 3 });
    expect(body.result.structuredContent.doubled).toBe(6);
  });

  it('may be left out altogether', async () => {
    const { body } = await request('tools/call', { name: 'greet' });
    expect(body.result.content[0].text).toBe('Hello, World!');
  });

  it('of an unknown tool are a protocol error that names it', async () => {
    const { body } = await call('nope');
    expect(body.error).toMatchObject({ code: -32602, message: 'Unknown tool: nope' });
  });
});

describe('what the SDK must not change', () => {
  const raw = async (name: string, args: object) => {
    const reply = await fetch(server().url, {
      method: 'POST',
      ...modernRequest('tools/call', { name, arguments: args }),
    });
    return reply.text();
  };

  it('a task is answered with the fields of CreateTaskResult alone', async () => {
    const { result } = JSON.parse(await raw('slow_compute', { seconds: 60 }));
    expect(Object.keys(result).sort()).toEqual(
      [
        '_meta',
        'createdAt',
        'lastUpdatedAt',
        'pollIntervalMs',
        'resultType',
        'status',
        'taskId',
        'ttlMs',
      ].sort(),
    );
    expect(result.resultType).toBe('task');
  });

  it('a 64-bit integer leaves with all its digits', async () => {
    expect(await raw('typed', { count: 1 })).toContain(`"id":${big.slice(0, 18)}`);
  });

  it('the result inside a task says that it is complete', async () => {
    const { body } = await call('slow_compute', { seconds: 0 });
    const { taskId } = body.result;
    const task = await eventually(
      async () => (await request('tasks/get', { taskId })).body.result,
      ({ status }) => status === 'completed',
    );
    expect(task.result.resultType).toBe('complete');
  });
});

describe('confirm', () => {
  const ask = async () => {
    const { body } = await call('asked', { target: 'production' });
    expect(body.result.resultType).toBe('input_required');
    return body.result as { inputRequests: { sure: { params: { message: string } } }; requestState: string };
  };
  const answer = (requestState: unknown, sure: unknown, args: object = { target: 'production' }) =>
    request('tools/call', { name: 'asked', arguments: args, requestState, inputResponses: { sure } });
  const yes = { action: 'accept', content: { yes: true } };

  it('asks nothing when its condition does not hold', async () => {
    expect((await call('asked', { target: 'staging' })).body.result.resultType).toBe('task');
  });

  it('asks before anything is started, and starts after the answer', async () => {
    const { inputRequests, requestState } = await ask();
    expect(inputRequests.sure).toMatchObject({
      method: 'elicitation/create',
      params: { mode: 'form', message: 'Really to production?' },
    });
    expect((await answer(requestState, yes)).body.result.resultType).toBe('task');
  });

  it('gives the same task to a repeated answer', async () => {
    const { requestState } = await ask();
    const [first, second] = await Promise.all([answer(requestState, yes), answer(requestState, yes)]);
    expect(second.body.result.taskId).toBe(first.body.result.taskId);
  });

  it('starts one job, whatever keys of its own the client repeats the answer with', async () => {
    const asked = (params: object, key?: string) =>
      request(
        'tools/call',
        { name: 'asked', arguments: { target: 'production' }, ...params },
        key === undefined ? {} : { meta: { 'taskferry/idempotencyKey': key } },
      );
    const { requestState } = (await asked({}, 'mine-1')).body.result;
    const responses = { requestState, inputResponses: { sure: yes } };
    const first = (await asked(responses, 'mine-1')).body.result.taskId;
    expect(first).toBeDefined();
    expect((await asked(responses, 'mine-1')).body.result.taskId).toBe(first);
    for (const other of ['mine-2', undefined])
      expect((await asked(responses, other)).body.error.code).toBe(-32602);
    // Asked anew under the same key: still the same job.
    const again = (await asked({}, 'mine-1')).body.result;
    const second = await asked({ requestState: again.requestState, inputResponses: { sure: yes } }, 'mine-1');
    expect(second.body.result.taskId).toBe(first);
  });

  it('of a plain tool counts once', async () => {
    const asked = await call('plain_asked', {});
    const { requestState } = asked.body.result;
    const use = () =>
      request('tools/call', {
        name: 'plain_asked',
        arguments: {},
        requestState,
        inputResponses: { sure: yes },
      });
    expect((await use()).body.result.content[0].text).toBe('called');
    expect((await use()).body.error).toMatchObject({
      code: -32602,
      message: expect.stringContaining('used before'),
    });
  });

  it.each(['decline', 'cancel'])('starts nothing after a %s', async (action) => {
    const { requestState } = await ask();
    expect((await answer(requestState, { action })).body.result).toMatchObject({
      isError: true,
      content: [{ text: 'asked: declined, nothing was started.' }],
    });
  });

  it.each([[{ action: 'accept', content: { yes: 'perhaps' } }], [undefined], [{ action: 'shrug' }]])(
    'asks again after the misfit %j',
    async (response) => {
      const { requestState } = await ask();
      expect((await answer(requestState, response)).body.result.resultType).toBe('input_required');
    },
  );

  it('ignores answers to other questions beside the right one', async () => {
    const { requestState } = await ask();
    const { body } = await request('tools/call', {
      name: 'asked',
      arguments: { target: 'production' },
      requestState,
      inputResponses: { sure: yes, other: { action: 'accept', content: {} } },
    });
    expect(body.result.resultType).toBe('task');
  });

  it('asks anew when an answer comes without the state of a question', async () => {
    const { body } = await request('tools/call', {
      name: 'asked',
      arguments: { target: 'production' },
      inputResponses: { sure: yes },
    });
    expect(body.result.resultType).toBe('input_required');
  });

  it.each([
    ['changed', (state: string) => `${state.slice(0, -2)}xx`, { target: 'production' }],
    ['used with other arguments', (state: string) => state, { target: 'elsewhere' }],
    ['not of our making', () => 'made-up', { target: 'production' }],
  ])('refuses a state that was %s', async (_what, change, args) => {
    const { requestState } = await ask();
    const { body } = await answer(change(requestState), yes, args);
    expect(body.error.code).toBe(-32602);
  });

  it('needs a client that can ask its user', async () => {
    const { status, body } = await call(
      'asked',
      { target: 'production' },
      { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    );
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: -32021, data: { requiredCapabilities: { elicitation: {} } } });
  });
});

describe('a start that may be repeated', () => {
  const start = (key: unknown, seconds = 60) =>
    call('slow_compute', { seconds }, { meta: { 'taskferry/idempotencyKey': key } });

  it('gives the same task for the same key and arguments', async () => {
    const [first, second] = await Promise.all([start('order-1'), start('order-1')]);
    expect(second.body.result.taskId).toBe(first.body.result.taskId);
  });

  it('refuses the same key with other arguments', async () => {
    await start('order-2');
    expect((await start('order-2', 61)).body.error).toMatchObject({
      code: -32602,
      message: expect.stringContaining('taskferry/idempotencyKey'),
    });
  });

  it.each([[''], ['a b'], ['x'.repeat(129)], ['ключ'], [7]])('refuses %j as a key', async (key) => {
    expect((await start(key)).body.error.code).toBe(-32602);
  });
});

describe('a client without tasks', () => {
  /** The messages of the event stream that a call is answered with. */
  async function stream(
    meta: object,
  ): Promise<{ method?: string; params?: { progressToken?: string; message?: string } }[]> {
    const reply = await fetch(server().url, {
      method: 'POST',
      ...modernRequest('tools/call', { name: 'moving', arguments: {} }, { capabilities: {}, meta }),
    });
    const text = await reply.text();
    if (!text.includes('data:')) return [JSON.parse(text)];
    return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
  }

  it('gets progress while it waits, when it asked for it', async () => {
    const messages = await stream({ progressToken: 'p1' });
    const progress = messages.filter(({ method }) => method === 'notifications/progress');
    expect(progress.map(({ params }) => params)).toContainEqual(
      expect.objectContaining({ progressToken: 'p1', progress: 1, message: 'running' }),
    );
  });

  it('is answered at once when the job asks what it cannot answer', async () => {
    const before = performance.now();
    const { body } = await call('confirm_delete', {}, { capabilities: {} });
    expect(body.result.isError).not.toBe(true);
    expect(body.result.content[0].text).toContain(
      'Needs an answer this client cannot give: Delete the file?',
    );
    expect(performance.now() - before).toBeLessThan(15_000);
  });

  it('gets no progress it did not ask for', async () => {
    const messages = await stream({});
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatchObject({ result: { resultType: 'complete' } });
  });
});

it('lists the tools in the order of the adapters and files, with their schemas untouched', async () => {
  const { body } = await request('tools/list', {});
  const names = body.result.tools.map(({ name }: { name: string }) => name);
  expect(names.indexOf('greet')).toBeLessThan(names.indexOf('typed'));
  expect(names.slice(-3)).toEqual(['asked', 'plain_asked', 'moving']);
  const region = body.result.tools.find(({ name }: { name: string }) => name === 'region_job');
  expect(region.inputSchema.properties.region['x-mcp-header']).toBe('Region');
  expect(body.result).toMatchObject({ ttlMs: 60_000, cacheScope: 'private' });
  expect((await request('tools/list', {})).body).toEqual(body);
});
