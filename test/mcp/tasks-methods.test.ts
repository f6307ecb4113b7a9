import { describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { allCapabilities, tasksCapability } from '../helpers/mcp-request.ts';
import { useServer } from './fixture.ts';

/** Sends the whole answer upstream, and gives back what came there. */
const echoing = `version: 1
name: echoing
env: [FIXTURE_URL]
upstream: { driver: http, baseUrl: "\${{ env.FIXTURE_URL }}" }
tools:
  echo_answer:
    description: Asks, and tells what the answer was.
    create:
      request: POST /jobs
      json: { questions: [sure] }
      capture: { id: response.body.id }
    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], input_required: [waiting], succeeded: [done] }
    ask:
      - key: sure
        message: Sure?
        schema: { type: object, required: [ok], properties: { ok: { type: boolean } } }
        onAccept:
          request: POST /jobs/\${{ job.id }}/answers
          json: { key: sure, answer: "\${{ answer }}" }
    result: { structured: { answers: "\${{ response.body.answers }}" } }
    timing: { every: 200ms }
`;
const { request, startTask } = useServer([echoing]);
const get = (taskId: string, capabilities: object = allCapabilities) =>
  request('tasks/get', { taskId }, { capabilities });
const statusOf = async (taskId: string) => (await get(taskId)).body.result;
const reaches = (taskId: string, status: string) =>
  eventually(
    () => statusOf(taskId),
    (task) => task.status === status,
  );

/** Ways a client may have declared tasks that do not count, or no longer. */
const wrongDeclarations: [string, { capabilities: object; meta?: object; params?: object }][] = [
  ['nothing', { capabilities: {} }],
  ['the extension bare in _meta', { capabilities: {}, meta: { 'io.modelcontextprotocol/tasks': {} } }],
  ['the capability of 2025', { capabilities: { tasks: { requests: { tools: { call: {} } } } } }],
  ['a task parameter of 2025', { capabilities: {}, params: { task: { ttl: 1000 } } }],
];

describe('the capability gate', () => {
  it.each(wrongDeclarations)(
    'gives no task to a call that declares %s',
    async (_what, { capabilities, meta, params }) => {
      // The same client declared the extension a moment ago: only this very request counts.
      await startTask('slow_compute', { seconds: 0 });
      const { body } = await request(
        'tools/call',
        { name: 'greet', arguments: {}, ...params },
        { capabilities, ...(meta && { meta }) },
      );
      expect(body.result).toMatchObject({ resultType: 'complete', content: [{ text: 'Hello, World!' }] });
      const strict = await request(
        'tools/call',
        { name: 'failing_job', arguments: {}, ...params },
        { capabilities, ...(meta && { meta }) },
      );
      expect(strict.status).toBe(400);
      expect(strict.body.error).toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
      });
    },
  );

  it.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    'refuses %s without the extension, whether or not the task exists',
    async (method) => {
      const live = await startTask('slow_compute', { seconds: 60 });
      const replies = await Promise.all(
        [live, 'x'.repeat(36)].map((taskId) =>
          request(method, { taskId, inputResponses: {} }, { capabilities: {} }),
        ),
      );
      for (const { status, body } of replies) {
        expect(status).toBe(400);
        expect(body.error).toMatchObject({
          code: -32021,
          data: { requiredCapabilities: { extensions: expect.anything() } },
        });
      }
      expect(replies[0]?.body).toEqual(replies[1]?.body);
    },
  );
});

describe('tasks/get', () => {
  it('is flat, with whole numbers and ISO times', async () => {
    const { body } = await get(await startTask('slow_compute', { seconds: 60 }));
    expect(Object.keys(body.result).sort()).toEqual(
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
    expect(body.result).toMatchObject({ resultType: 'complete', status: 'working', ttlMs: 600_000 });
    expect(Number.isInteger(body.result.pollIntervalMs)).toBe(true);
    expect(new Date(body.result.createdAt).toISOString()).toBe(body.result.createdAt);
  });

  it('answers for an id that does not exist in the specified words', async () => {
    const { status, body } = await get('0'.repeat(36));
    expect(status).toBe(200);
    expect(body.error).toEqual({ code: -32602, message: 'Failed to retrieve task: Task not found' });
  });

  it.each([[undefined], [''], [7], [null]])('refuses %j as an id', async (taskId) => {
    const { body } = await request('tasks/get', { taskId });
    expect(body.error.code).toBe(-32602);
  });

  it('refuses a request whose Mcp-Name names another task', async () => {
    const taskId = await startTask('slow_compute', { seconds: 60 });
    const { status, body } = await request(
      'tasks/get',
      { taskId },
      { headers: { 'mcp-name': 'slow_compute' } },
    );
    expect(status).toBe(400);
    expect(body.error.code).toBe(-32020);
  });

  it('resolves at once after the handle was given, two hundred times', async () => {
    for (let round = 0; round < 20; round++) {
      const ids = await Promise.all(
        Array.from({ length: 10 }, () => startTask('slow_compute', { seconds: 60 })),
      );
      const replies = await Promise.all(ids.map((id) => get(id)));
      expect(replies.every(({ body }) => body.result?.taskId !== undefined)).toBe(true);
    }
  });

  it('never shows a completed task without its result', async () => {
    const taskId = await startTask('slow_compute', { seconds: 0.5 });
    const seen = await eventually(
      async () => {
        const task = await statusOf(taskId);
        expect(task.status === 'completed').toBe(task.result !== undefined);
        return task;
      },
      (task) => task.status === 'completed',
    );
    expect(seen.result).toMatchObject({ resultType: 'complete', content: [{ text: 'work computed' }] });
    expect(seen.result._meta).toBeUndefined();
  });

  it('hides a question from a request that cannot answer it, and says what it is about', async () => {
    const taskId = await startTask('confirm_delete');
    await reaches(taskId, 'input_required');
    const { body } = await get(taskId, tasksCapability);
    expect(body.result).toMatchObject({
      status: 'working',
      statusMessage: 'Needs an answer this client cannot give: Delete the file?',
    });
    expect(body.result.inputRequests).toBeUndefined();
  });
});

describe('tasks/update', () => {
  const update = (taskId: string, inputResponses: unknown) =>
    request('tasks/update', { taskId, inputResponses });
  const asking = async (tool: string) => {
    const taskId = await startTask(tool);
    await reaches(taskId, 'input_required');
    return taskId;
  };

  it('acknowledges with the empty result and carries the answer to the job', async () => {
    const taskId = await asking('confirm_delete');
    const { body } = await update(taskId, { 'confirm-1': { action: 'accept', content: { confirm: true } } });
    const { _meta, ...result } = body.result;
    expect(result).toEqual({ resultType: 'complete' });
    expect((await reaches(taskId, 'completed')).result.content[0].text).toBe('Deleted file.txt');
  });

  it('ignores keys that are not open, also those that look inherited', async () => {
    const taskId = await asking('confirm_delete');
    const answer = { action: 'accept', content: { confirm: true } };
    const { body } = await update(taskId, { 'confirm-2': answer, toString: answer, ['__proto__']: answer });
    expect(body.result.resultType).toBe('complete');
    expect(await statusOf(taskId)).toMatchObject({ status: 'input_required' });
  });

  it.each([
    ['a content that breaks the schema', { action: 'accept', content: { confirm: 'yes' } }, /confirm/],
    ['a content without a required field', { action: 'accept', content: {} }, /confirm/],
    ['no content', { action: 'accept' }, /confirm/],
    ['an unknown action', { action: 'maybe' }, /accept, decline or cancel/],
    ['a wrapped response', { method: 'elicitation/create', result: { action: 'accept' } }, /action/],
    ['a bare value', 12345, /action/],
  ])('refuses %s by name, and the question stays open', async (_what, response, message) => {
    const taskId = await asking('confirm_delete');
    const { body } = await update(taskId, { 'confirm-1': response });
    expect(body.error).toMatchObject({ code: -32602, message: expect.stringMatching(message) });
    expect(await statusOf(taskId)).toMatchObject({ status: 'input_required' });
  });

  it('consumes nothing when one of several answers does not fit', async () => {
    const taskId = await asking('multi_input');
    const { body } = await update(taskId, {
      'first-1': { action: 'accept', content: { name: 'a' } },
      'second-1': { action: 'accept', content: { name: 5 } },
    });
    expect(body.error.message).toContain('second-1');
    expect(Object.keys((await statusOf(taskId)).inputRequests)).toEqual(['first-1', 'second-1']);
  });

  it('drops fields the question does not have', async () => {
    const taskId = await asking('echo_answer');
    await update(taskId, { 'sure-1': { action: 'accept', content: { ok: true, extra: 'x' } } });
    const { result } = await reaches(taskId, 'completed');
    expect(result.structuredContent).toEqual({ answers: [{ key: 'sure', answer: { ok: true } }] });
  });

  it('needs inputResponses', async () => {
    const taskId = await asking('confirm_delete');
    expect((await request('tasks/update', { taskId })).body.error.code).toBe(-32602);
  });

  it('refuses an unknown task', async () => {
    expect((await update('0'.repeat(36), {})).body.error.code).toBe(-32602);
  });

  it('acknowledges answers to a task that has ended and changes nothing', async () => {
    const taskId = await startTask('slow_compute', { seconds: 0 });
    const before = await reaches(taskId, 'completed');
    expect((await update(taskId, { 'x-1': { action: 'cancel' } })).body.result.resultType).toBe('complete');
    expect(await statusOf(taskId)).toEqual(before);
  });
});

describe('tasks/cancel', () => {
  it('acknowledges, stays working, and ends when the upstream says so', async () => {
    const taskId = await startTask('slow_compute', { seconds: 60 });
    const { body } = await request('tasks/cancel', { taskId });
    const { _meta, ...result } = body.result;
    expect(result).toEqual({ resultType: 'complete' });
    expect(await reaches(taskId, 'cancelled')).not.toHaveProperty('result');
  });

  it('leaves a task that has ended exactly as it was', async () => {
    const taskId = await startTask('slow_compute', { seconds: 0 });
    const before = await reaches(taskId, 'completed');
    expect((await request('tasks/cancel', { taskId })).body.result.resultType).toBe('complete');
    expect(await statusOf(taskId)).toEqual(before);
  });

  it('withdraws the questions of the task', async () => {
    const taskId = await startTask('confirm_delete');
    await reaches(taskId, 'input_required');
    await request('tasks/cancel', { taskId });
    expect(await statusOf(taskId)).not.toHaveProperty('inputRequests');
    await reaches(taskId, 'cancelled');
  });

  it('refuses an unknown task', async () => {
    expect((await request('tasks/cancel', { taskId: '0'.repeat(36) })).body.error.code).toBe(-32602);
  });
});

it.each(['tasks/list', 'tasks/result'])(
  'does not know %s, which the extension no longer has',
  async (method) => {
    const { status, body } = await request(method, { taskId: 'x' });
    expect(status).toBe(404);
    expect(body.error.code).toBe(-32601);
  },
);

it.each([null, 7, 'yes', true, [{ action: 'accept' }]])(
  'answers that are %j and no map are refused by name, whatever the method',
  async (inputResponses) => {
    const taskId = await startTask('slow_compute', { seconds: 0 });
    for (const [method, params] of [
      ['tasks/update', { taskId }],
      ['tools/call', { name: 'greet', arguments: {} }],
    ] as const) {
      const { body } = await request(method, { ...params, inputResponses });
      expect(body).toMatchObject({ id: 1, error: { code: -32602 } });
      expect(body.error.message).toContain('inputResponses must be an object');
    }
  },
);
