// `npm run demo`: a job service, taskferry with its adapter, and the official MCP client, each for real.
// `--stay` keeps both servers running at the end.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { TaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { connectTaskClient, type TaskClient } from './task-client.ts';

const stay = process.argv.includes('--stay');
const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'taskferry-demo-'));
const children: ChildProcess[] = [];
/** A server that has not said that it is ready by then never will. */
const startLimitMs = 20_000;

/** Starts a process and resolves with the first line that `ready` finds something in. */
function start(args: string[], env: { [name: string]: string }, ready: RegExp): Promise<string> {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${args[0]} did not get ready`)), startLimitMs);
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        const found = ready.exec(line)?.[1];
        if (found === undefined) return;
        clearTimeout(timer);
        resolve(found);
      });
    }
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`${args[0]} ended with ${code}:\n${lines.join('\n')}`));
    });
  });
}

async function stop(): Promise<void> {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    }),
  );
  rmSync(folder, { recursive: true, force: true });
}

// ---- what is shown -----------------------------------------------------------------------------

const live = process.stdout.isTTY === true;
let shown = '';

/** The state of the task: one line that is rewritten on a terminal, a line per change otherwise. */
function show(status: string, message: string | undefined): void {
  const text = message === undefined ? status : `${status}: ${message}`;
  if (text === shown) return;
  shown = text;
  if (live) process.stdout.write(`\r\u001b[2K   ${text}`);
  else console.log(`   ${text}`);
}

function settle(text: string): void {
  if (live && shown !== '') process.stdout.write('\n');
  shown = '';
  console.log(`   => ${text}\n`);
}

function describe(outcome: TaskOutcome<unknown>): string {
  if (outcome.status === 'failed') return `the call failed: ${outcome.error.message}`;
  if (outcome.status === 'cancelled') return 'cancelled';
  const result = outcome.result as { content?: { text?: string }[]; isError?: boolean };
  return `${result.isError ? 'the job failed: ' : ''}${result.content?.[0]?.text ?? 'done'}`;
}

async function run(
  { session }: TaskClient,
  tool: string,
  args: { [name: string]: number },
  whenRunning?: (cancel: () => Promise<void>) => Promise<void>,
): Promise<TaskOutcome<unknown>> {
  const execution = await session.callTool(tool, args);
  console.log(`   task ${execution.handle?.taskId ?? '(answered at once)'}`);
  let told = false;
  const { outcome } = await execution.settle({
    async onEvent(event) {
      const task = event.type === 'task' ? event.task : undefined;
      // The question has been shown when it was put; the event of it comes after the answer.
      if (task && task.status !== 'input_required') show(task.status, task.statusMessage);
      if (told || task?.status !== 'working' || task.statusMessage === undefined) return;
      told = true;
      await whenRunning?.(() => execution.cancel());
    },
  });
  settle(describe(outcome));
  return outcome;
}

// ---- the main job ------------------------------------------------------------------------------

/** Fails the demo when a part did not go as it should. */
function expect(what: string, holds: boolean): void {
  if (!holds) throw new Error(`the demo went wrong: ${what}`);
}

async function play(url: string): Promise<void> {
  const client = await connectTaskClient(url, async (request) => {
    const { message } = request.params as { message?: string };
    show('input_required', 'waiting for an approval');
    if (live) process.stdout.write('\n');
    console.log(`   question: ${message}\n   answer:   yes`);
    return { action: 'accept', content: { approve: true, comment: 'looks good' } } as never;
  });
  try {
    console.log('1. demo_render: a job with progress and a result');
    const rendered = await run(client, 'demo_render', { steps: 5 });
    expect('the render did not complete', rendered.status === 'completed');

    console.log('2. demo_test: a job that fails is a completed task whose result says so');
    const tested = await run(client, 'demo_test', {});
    expect(
      'the test did not fail',
      tested.status === 'completed' && (tested.result as { isError?: boolean }).isError === true,
    );

    console.log('3. demo_deploy: a job that asks for an approval');
    const deployed = await run(client, 'demo_deploy', {});
    expect('the deployment did not complete', deployed.status === 'completed');

    console.log('4. demo_render with 100 steps, cancelled on its way');
    const cancelled = await run(client, 'demo_render', { steps: 100 }, async (cancel) => {
      await cancel();
    });
    expect('the cancel did not end the task', cancelled.status === 'cancelled');
  } finally {
    await client.close();
  }
}

try {
  const service = await start([here('job-service.ts'), stay ? '3738' : '0'], {}, /job service on (\S+)/);
  console.log(`job service  ${service}`);
  const url = await start(
    [
      here('../bin/taskferry.js'),
      'serve',
      '--adapter',
      here('demo.yaml'),
      '--store',
      `sqlite:${join(folder, 'demo.db')}`,
      '--port',
      stay ? '3737' : '0',
    ],
    { DEMO_URL: service, TASKFERRY_LOG_LEVEL: 'error' },
    /ready at (\S+)/,
  );
  console.log(`taskferry    ${url}\n`);
  await play(url);
  const where = stay ? url : 'http://127.0.0.1:3737/mcp';
  console.log(
    stay
      ? 'Point your own client at it:'
      : 'To point your own client at it, run npm run demo -- --stay, then:',
  );
  console.log(`  URL ${where}, transport Streamable HTTP, no authentication
  claude mcp add --transport http taskferry ${where}
  npx -y @modelcontextprotocol/inspector@2.12.0 --cli --server-url ${where} --transport http --method tools/list`);
  if (!stay) console.log('Everything that was started is stopped again.');
  if (stay) {
    console.log('\nBoth servers go on. Ctrl-C stops them.');
    await new Promise((resolve) => {
      process.once('SIGINT', resolve);
      process.once('SIGTERM', resolve);
    });
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await stop();
}
