import { TaskStatusNotificationV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { allCapabilities, modernRequest, tasksCapability } from '../helpers/mcp-request.ts';
import { useServer } from './fixture.ts';

const { server, request, startTask } = useServer();

// Frames are looked into freely; their shapes are what is being tested.
// biome-ignore lint/suspicious/noExplicitAny: see above.
type Frame = any;

const open: AbortController[] = [];
afterEach(() => {
  for (const controller of open.splice(0)) controller.abort();
});

/** Opens a stream and collects its frames in the background. */
async function listen(notifications: object, capabilities: object = allCapabilities) {
  const controller = new AbortController();
  open.push(controller);
  const reply = await fetch(server().url, {
    method: 'POST',
    ...modernRequest('subscriptions/listen', { notifications }, { capabilities }),
    signal: controller.signal,
  });
  const frames: Frame[] = [];
  let ended = false;
  const reading = (async () => {
    if (!reply.body || !reply.headers.get('content-type')?.includes('event-stream')) {
      frames.push(await reply.json());
      return;
    }
    let held = '';
    for await (const chunk of reply.body.pipeThrough(new TextDecoderStream())) {
      held += chunk;
      for (let end = held.indexOf('\n\n'); end >= 0; end = held.indexOf('\n\n')) {
        const data = /^data: (.*)$/m.exec(held.slice(0, end))?.[1];
        held = held.slice(end + 2);
        if (data !== undefined) frames.push(JSON.parse(data));
      }
    }
  })()
    .catch(() => {})
    .finally(() => {
      ended = true;
    });
  const until = (accept: (frames: Frame[]) => boolean) => eventually(() => frames, accept);
  return { reply, frames, until, reading, ended: () => ended, stop: () => controller.abort() };
}

const tasksOf = (frames: Frame[]) => frames.filter(({ method }) => method === 'notifications/tasks');

describe('subscriptions/listen with taskIds', () => {
  it('acknowledges first, then sends the state of each task, then every change to the end', async () => {
    const taskId = await startTask('slow_compute', { seconds: 1 });
    const { frames, until } = await listen({ taskIds: [taskId] });
    await until((seen) => tasksOf(seen).some(({ params }) => params.status === 'completed'));
    expect(frames[0]).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: {
        notifications: { taskIds: [taskId] },
        _meta: { 'io.modelcontextprotocol/subscriptionId': 1 },
      },
    });
    const states = tasksOf(frames);
    expect(states[0].params).toMatchObject({ taskId, status: 'working' });
    for (const state of states) {
      TaskStatusNotificationV2Schema.parse(state);
      expect(state.params._meta).toEqual({ 'io.modelcontextprotocol/subscriptionId': 1 });
      expect(state.params).not.toHaveProperty('resultType');
    }
    const last = states.at(-1).params;
    const { body } = await request('tasks/get', { taskId });
    const { _meta: sent, ...pushed } = last;
    const { _meta: got, resultType, ...polled } = body.result;
    expect(pushed).toEqual(polled);
  });

  it('tells nothing of ids that do not exist, and collapses repeated ones', async () => {
    const taskId = await startTask('slow_compute', { seconds: 60 });
    const { frames, until } = await listen({ taskIds: ['0'.repeat(36), taskId, taskId] });
    await until((seen) => tasksOf(seen).length === 1);
    expect(frames[0].params.notifications.taskIds).toEqual([taskId]);
  });

  it('ends with its result when there is nothing to follow', async () => {
    const { frames, reading } = await listen({ taskIds: ['0'.repeat(36)] });
    await reading;
    expect(frames[0].params.notifications).toEqual({ taskIds: [] });
    expect(frames.at(-1)).toMatchObject({ id: 1, result: { resultType: 'complete' } });
  });

  it('shows a question only when the request that listens can answer it', async () => {
    const taskId = await startTask('confirm_delete');
    const asking = await listen({ taskIds: [taskId] });
    await asking.until((seen) => tasksOf(seen).some(({ params }) => params.status === 'input_required'));
    const blind = await listen({ taskIds: [taskId] }, tasksCapability);
    await blind.until((seen) => tasksOf(seen).length > 0);
    expect(tasksOf(blind.frames)[0].params).toMatchObject({ status: 'working' });
    expect(tasksOf(blind.frames)[0].params.statusMessage).toContain('cannot give');
  });

  it('refuses a request that does not declare the extension', async () => {
    const { reply, frames, reading } = await listen({ taskIds: ['x'] }, {});
    await reading;
    expect(reply.status).toBe(400);
    expect(frames[0]).toMatchObject({
      id: 1,
      error: { code: -32021, data: { requiredCapabilities: expect.anything() } },
    });
  });

  it.each([['one'], [[7]], [null]])('refuses %j as taskIds', async (taskIds) => {
    const { frames, reading } = await listen({ taskIds });
    await reading;
    expect(frames[0].error.code).toBe(-32602);
  });

  it('refuses more ids than one stream may follow', async () => {
    const { frames, reading } = await listen({
      taskIds: Array.from({ length: 1_001 }, (_, index) => `id-${index}`),
    });
    await reading;
    expect(frames[0].error).toMatchObject({ code: -32602, message: expect.stringContaining('1000') });
  });

  it('frees the stream when the client goes', async () => {
    const streams = async () => {
      const text = await (await fetch(new URL('/metrics', server().url))).text();
      return Number(/^taskferry_listen_streams (\d+)$/m.exec(text)?.[1]);
    };
    const taskId = await startTask('slow_compute', { seconds: 60 });
    const opened = await Promise.all([listen({ taskIds: [taskId] }), listen({ taskIds: [taskId] })]);
    await Promise.all(opened.map(({ until }) => until((seen) => tasksOf(seen).length > 0)));
    const before = await streams();
    for (const { stop } of opened) stop();
    await eventually(streams, (count) => count === before - 2);
  });
});
