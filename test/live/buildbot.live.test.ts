// taskferry with the shipped Buildbot adapter against a real Buildbot master, by way of the official MCP client.

import { fileURLToPath } from 'node:url';
import type { TaskController } from '@modelcontextprotocol/ext-tasks/client';
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest';
import { connectTaskClient, type TaskClient } from '../../demo/task-client.ts';
import { startTaskferry } from '../helpers/start-taskferry.ts';
import { tempDir } from '../helpers/temp-dir.ts';
import { type BuildbotMaster, type BuildRequest, startBuildbot } from './buildbot-master.ts';
import { startLossyProxy } from './lossy-proxy.ts';

const adapter = fileURLToPath(new URL('../../adapters/buildbot.yaml', import.meta.url));
/** Longer than any test waits: such a build only ends by a cancel. */
const forLong = '600';

let buildbot: BuildbotMaster;
let shared: Ferry;

beforeAll(async () => {
  buildbot = await startBuildbot();
  shared = await startFerry();
});

afterAll(async () => {
  await shared?.close();
  await buildbot?.close();
});

/** A taskferry server and a client of it. */
interface Ferry {
  client: TaskClient;
  /** Can be called again. */
  close(): Promise<void>;
}

async function startFerry(options: { url?: string; storePath?: string } = {}): Promise<Ferry> {
  const { url = buildbot.url, ...rest } = options;
  const server = await startTaskferry({
    adapters: [adapter],
    environment: { BUILDBOT_URL: url },
    ...rest,
  });
  const client = await connectTaskClient(server.url);
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await client.close();
    await server.close();
  };
  return {
    client,
    close() {
      closed ??= close();
      return closed;
    },
  };
}

/** One more, for one test. */
async function ownFerry(options: { url?: string; storePath?: string }): Promise<Ferry> {
  const ferry = await startFerry(options);
  onTestFinished(() => ferry.close());
  return ferry;
}

const started: TaskController[] = [];
afterEach(async () => {
  // The next test needs the master, and its only worker free, also after a test that failed half-way.
  await buildbot.startMaster();
  await buildbot.startWorker();
  for (const task of started.splice(0)) {
    if ((await task.snapshot()).status !== 'working') continue;
    await task.cancel();
    await ended(task);
  }
});

function force(fields: { [name: string]: string | string[] }, by = shared, builder = 'tests') {
  return by.client.session.callTool('buildbot_force_build', {
    scheduler: 'force',
    builder,
    reason: 'a live test',
    fields,
  });
}

/** Forces a build and leaves the following to the test. */
async function begin(fields: { [name: string]: string }, by = shared): Promise<TaskController> {
  const execution = await force(fields, by);
  if (execution.kind !== 'task') throw new Error(JSON.stringify(await execution.result()));
  await execution.detach();
  const task = by.client.session.task(execution.handle.taskId);
  if (by === shared) started.push(task);
  return task;
}

async function shows(task: TaskController, text: string | RegExp, timeout = 25_000): Promise<void> {
  await expect
    .poll(async () => (await task.snapshot()).statusMessage, { timeout, interval: 100 })
    .toMatch(text);
}

async function ended(task: TaskController, timeout = 25_000) {
  await expect
    .poll(async () => (await task.snapshot()).status, { timeout, interval: 100 })
    .not.toBe('working');
  return task.snapshot();
}

/** The newest request that Buildbot knows, and its builds. */
async function newest() {
  const request = (await buildbot.requests()).at(-1) as BuildRequest;
  return { request, builds: await buildbot.builds(request.buildrequestid) };
}

function textOf(outcome: unknown): string {
  return (outcome as { result: { content: { text: string }[] } }).result.content[0]?.text ?? '';
}

it('follows a forced build from its request to its success, with progress on the way', async () => {
  const execution = await force({ secs: '5', rc: '0' });
  expect(execution.kind).toBe('task');
  const messages: (string | undefined)[] = [];
  const { outcome } = await execution.settle({
    onEvent: (event) => void (event.type === 'task' && messages.push(event.task.statusMessage)),
  });

  const { request, builds } = await newest();
  const number = builds[0]?.number;
  expect(messages).toContain(`Build #${number}: building`);
  expect(outcome).toMatchObject({
    status: 'completed',
    result: {
      content: [{ type: 'text', text: `Build #${number} of tests: build successful` }],
      structuredContent: {
        builder: 'tests',
        build: number,
        results: 'success',
        state: 'build successful',
        url: `${buildbot.url}/#/builders/${request.builderid}/builds/${number}`,
      },
    },
  });
  expect(request).toMatchObject({ complete: true, results: 0 });
  expect(builds).toMatchObject([{ complete: true, results: 0 }]);
});

it('ends a failing build as completed, with an error result that says which build failed and how', async () => {
  const { outcome } = await (await force({ secs: '0', rc: '3' })).settle();
  const { builds } = await newest();
  expect(outcome).toMatchObject({ status: 'completed', result: { isError: true } });
  expect(textOf(outcome)).toMatch(
    new RegExp(`^Build #${builds[0]?.number} of tests: failed .*\\(failure\\)\\. See ${buildbot.url}/#/`),
  );
  expect(builds).toMatchObject([{ complete: true, results: 2 }]);
});

it('stops a running build and ends as cancelled once Buildbot says so', async () => {
  const task = await begin({ secs: forLong });
  await shows(task, /^Build #\d+: building$/);
  await task.cancel();
  expect(await ended(task)).toMatchObject({
    status: 'cancelled',
    statusMessage: expect.stringMatching(/cancelled by the MCP client/),
  });
  expect((await newest()).builds).toMatchObject([{ complete: true, results: 6 }]);
});

it('cancels a build that still waits in the queue, and no build is made for it', async () => {
  const running = await begin({ secs: forLong });
  await shows(running, /^Build #\d+: building$/);
  const waiting = await begin({ secs: '1' });
  await shows(waiting, 'Waiting for a worker');
  await waiting.cancel();
  expect(await ended(waiting)).toMatchObject({
    status: 'cancelled',
    statusMessage: 'Cancelled before a build was started',
  });
  const { request, builds } = await newest();
  expect(request).toMatchObject({ complete: true, results: 6 });
  expect(builds).toEqual([]);
  expect(await running.snapshot()).toMatchObject({ status: 'working' });
});

it('ends a waiting build that Buildbot merges into a newer request as cancelled, not as a success', async () => {
  const running = await begin({ secs: forLong });
  await shows(running, /^Build #\d+: building$/);
  const older = await begin({ secs: '1' });
  await shows(older, 'Waiting for a worker');
  await begin({ secs: '2' });
  expect(await ended(older)).toMatchObject({
    status: 'cancelled',
    statusMessage: expect.stringMatching(/^No build was made: Buildbot merged this request/),
  });
});

it('follows a running build to its success across a restart of taskferry', async () => {
  const storePath = `${tempDir()}/tasks.db`;
  const first = await ownFerry({ storePath });
  const task = await begin({ secs: '5' }, first);
  await shows(task, /^Build #\d+: building$/);
  await first.close();

  const second = await ownFerry({ storePath });
  const outcome = await second.client.session.task(task.taskId).result();
  expect(outcome).toMatchObject({
    status: 'completed',
    result: { structuredContent: { results: 'success' } },
  });
  expect((await newest()).builds).toHaveLength(1);
});

it('says since when a crashed master is out of reach, and follows the build that Buildbot makes again', async () => {
  const task = await begin({ secs: '4' });
  await shows(task, /^Build #\d+: building$/);
  await buildbot.killMaster();
  await shows(task, /Upstream unreachable since \d{4}-/);
  expect(await task.snapshot()).toMatchObject({ status: 'working' });

  await buildbot.startMaster();
  const outcome = await task.result();
  const { builds } = await newest();
  expect(builds).toMatchObject([
    { complete: true, results: 5 },
    { complete: true, results: 0 },
  ]);
  expect(outcome).toMatchObject({
    status: 'completed',
    result: { structuredContent: { build: builds[1]?.number, results: 'success' } },
  });
}, 90_000);

it('goes on with the next build when the worker of the first one is lost', async () => {
  const task = await begin({ secs: '3' });
  await shows(task, /^Build #\d+: building$/);
  await buildbot.killWorker();
  await shows(task, /was lost; waiting for a worker to build again$/);
  await buildbot.startWorker();
  const outcome = await task.result();
  const { builds } = await newest();
  expect(builds.map(({ results }) => results)).toEqual([5, 0]);
  expect(outcome).toMatchObject({
    status: 'completed',
    result: { structuredContent: { build: builds[1]?.number, results: 'success' } },
  });
});

it('cancels a build that was lost and waits to be built again', async () => {
  const task = await begin({ secs: forLong });
  await shows(task, /^Build #\d+: building$/);
  await buildbot.killWorker();
  await shows(task, /was lost; waiting for a worker to build again$/);
  await task.cancel();
  expect(await ended(task)).toMatchObject({ status: 'cancelled' });
  await buildbot.startWorker();
  expect((await newest()).builds).toMatchObject([{ complete: true, results: 5 }]);
});

it('finds a build whose reply was lost by the key in its reason, and does not start it twice', async () => {
  const proxy = await startLossyProxy(
    buildbot.url,
    (method, path) => method === 'POST' && path === '/api/v2/forceschedulers/force',
  );
  onTestFinished(() => proxy.close());
  const behind = await ownFerry({ url: proxy.url });
  const before = (await buildbot.requests()).length;
  const { outcome } = await (await force({ secs: '0' }, behind)).settle();
  expect(outcome).toMatchObject({
    status: 'completed',
    result: { structuredContent: { results: 'success' } },
  });
  expect(proxy.sent()).toBe(1);
  expect(await buildbot.requests()).toHaveLength(before + 1);
});

it('builds on the builder that is named by its id, whatever builders the fields name', async () => {
  const ids = await buildbot.builderIds();
  const fields = { secs: '0', builderid: String(ids.tests), builderNames: ['tests'] };
  const { outcome } = await (await force(fields, shared, String(ids['other tests']))).settle();
  expect(outcome).toMatchObject({
    status: 'completed',
    result: { structuredContent: { builder: 'other tests', results: 'success' } },
  });
  expect((await newest()).request).toMatchObject({ builderid: ids['other tests'], results: 0 });
});

it.each([
  ['a scheduler', { scheduler: 'nope', builder: 'tests' }, 'forceschedulers'],
  ['a builder', { scheduler: 'force', builder: 'nope' }, 'builders'],
  [
    'a field value',
    { scheduler: 'force', builder: 'tests', fields: { secs: 'soon' } },
    'does not match pattern',
  ],
])('refuses %s that Buildbot does not accept, and starts nothing', async (_what, args, text) => {
  const before = (await buildbot.requests()).length;
  const execution = await shared.client.session.callTool('buildbot_force_build', args);
  expect(execution.kind).toBe('immediate');
  const outcome = await execution.result();
  expect(outcome).toMatchObject({ status: 'completed', result: { isError: true } });
  expect(textOf(outcome)).toContain(text);
  expect(await buildbot.requests()).toHaveLength(before);
});

it('lists the builders, and the force schedulers with the fields they take', async () => {
  const builders = await (await shared.client.session.callTool('buildbot_list_builders')).result();
  const ids = Object.entries(await buildbot.builderIds());
  expect(builders).toMatchObject({
    result: {
      structuredContent: { builders: ids.sort().map(([name, builderid]) => ({ name, builderid })) },
    },
  });
  const schedulers = await (await shared.client.session.callTool('buildbot_list_force_schedulers')).result();
  expect(schedulers).toMatchObject({
    result: { structuredContent: { schedulers: [{ name: 'force', builders: ['tests', 'other tests'] }] } },
  });
  expect(textOf(schedulers)).toContain('"secs"');
});
