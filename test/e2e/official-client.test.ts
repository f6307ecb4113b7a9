// The official client with the official tasks helper against a real server, over the conformance fixture's tools.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { SerializedTaskReference } from '@modelcontextprotocol/ext-tasks/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectTaskClient, type TaskClient } from '../../demo/task-client.ts';
import { startFixtureService } from '../conformance/fixture-service.ts';
import { startTaskferry, type TestTaskferry } from '../helpers/start-taskferry.ts';
import { tempDir } from '../helpers/temp-dir.ts';

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const adapter = here('../conformance/conformance.yaml');

let fixture: Awaited<ReturnType<typeof startFixtureService>>;
beforeAll(async () => {
  fixture = await startFixtureService();
});
afterAll(() => fixture.close());

describe('one server and one client', () => {
  let server: TestTaskferry;
  let client: TaskClient;
  /** Messages of the questions that were answered. */
  const asked: string[] = [];

  beforeAll(async () => {
    server = await startTaskferry({ adapters: [adapter], environment: { FIXTURE_URL: fixture.url } });
    client = await connectTaskClient(server.url, async (request) => {
      const { message } = request.params as { message: string };
      asked.push(message);
      return { action: 'accept', content: { name: 'Alice', confirm: true } } as never;
    });
  });
  afterAll(async () => {
    await client.close();
    await server.close();
  });

  async function call(tool: string, args: { [name: string]: string | number } = {}) {
    const execution = await client.session.callTool(tool, args);
    const { outcome } = await execution.settle();
    return { kind: execution.kind, outcome };
  }
  const completed = (text: string) => ({
    status: 'completed',
    result: { resultType: 'complete', content: [{ type: 'text', text }] },
  });

  it('gets an immediate result from a tool that runs no job', async () => {
    const { kind, outcome } = await call('greet', { name: 'Bob' });
    expect(kind).toBe('immediate');
    expect(outcome).toMatchObject(completed('Hello, Bob!'));
  });

  it('follows a task to its result', async () => {
    const { kind, outcome } = await call('slow_compute', { seconds: 1, label: 'pi' });
    expect(kind).toBe('task');
    expect(outcome).toMatchObject(completed('pi computed'));
  });

  it('gets a failed job as a completed task whose result is an error', async () => {
    const { outcome } = await call('failing_job');
    expect(outcome).toMatchObject({ status: 'completed', result: { isError: true } });
  });

  it('gets a call that could not be carried out as a failed task with a JSON-RPC error', async () => {
    const { outcome } = await call('protocol_error_job');
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: -32603, data: { reason: 'upstream_error' } },
    });
  });

  it('answers one question on the way', async () => {
    asked.length = 0;
    const { outcome } = await call('confirm_delete', { filename: 'a.txt' });
    expect(outcome).toMatchObject(completed('Deleted a.txt'));
    expect(asked).toEqual(['Delete the file?']);
  });

  it('answers two questions that stand at once', async () => {
    asked.length = 0;
    const { outcome } = await call('multi_input');
    expect(outcome).toMatchObject(completed('Both answers received'));
    expect(asked.toSorted()).toEqual(['First answer?', 'Second answer?']);
  });

  it('confirms before anything is started, then follows the task', async () => {
    asked.length = 0;
    const { kind, outcome } = await call('test_tool_with_task');
    expect(kind).toBe('task');
    expect(outcome).toMatchObject(completed('Hello, Alice!'));
    expect(asked).toEqual(['What is your name?']);
  });

  it('cancels a task, which ends when the upstream says so', async () => {
    const execution = await client.session.callTool('slow_compute', { seconds: 60 });
    await execution.cancel();
    expect((await execution.settle()).outcome).toMatchObject({ status: 'cancelled' });
    const id = execution.handle?.taskId;
    if (id === undefined) throw new Error('no task');
    const task = client.session.task(id);
    await expect.poll(async () => (await task.snapshot()).status, { timeout: 5_000 }).toBe('cancelled');
  });

  it('is told that an unknown task does not exist', async () => {
    const unknown = client.session.task('0'.repeat(36) as never);
    await expect(unknown.snapshot()).rejects.toMatchObject({ code: -32602 });
  });
});

/** taskferry as a process of its own, that can be killed. */
async function spawnServer(port: number, storePath: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(
    process.execPath,
    [
      here('../../bin/taskferry.js'),
      'serve',
      '--adapter',
      adapter,
      '--store',
      `sqlite:${storePath}`,
      '--port',
      String(port),
    ],
    { env: { ...process.env, FIXTURE_URL: fixture.url }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const lines = createInterface({ input: child.stderr });
  for await (const line of lines) {
    const url = /ready at (\S+)/.exec(line)?.[1];
    if (url !== undefined) return { child, url };
  }
  throw new Error('the server ended before it was ready');
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

it('resumes by task id from a new client process after the server was killed and started again', async () => {
  const storePath = `${tempDir()}/tasks.db`;
  const first = await spawnServer(0, storePath);
  const client = await connectTaskClient(first.url);
  const execution = await client.session.callTool('slow_compute', { seconds: 3, label: 'e' });
  if (execution.kind !== 'task') throw new Error('no task');
  let reference: SerializedTaskReference | undefined;
  await execution.handoff((given) => {
    reference = given;
  });
  await client.close();
  await kill(first.child);

  const second = await spawnServer(Number(new URL(first.url).port), storePath);
  const resumed = spawn(process.execPath, [here('resume-child.ts'), second.url, JSON.stringify(reference)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  for await (const chunk of resumed.stdout) output += chunk;
  await kill(second.child);
  expect(JSON.parse(output)).toMatchObject({
    status: 'completed',
    result: { content: [{ type: 'text', text: 'e computed' }] },
  });
}, 40_000);
