import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { mcpRequest } from '../helpers/mcp-request.ts';
import { startTaskferry, type TestTaskferry } from '../helpers/start-taskferry.ts';
import { tempDir } from '../helpers/temp-dir.ts';
import { type JobUpstream, startJobUpstream } from './job-upstream.ts';

/** What an adapter may do about a create whose outcome is unknown. */
const recoveries = {
  'an idempotency key': '      idempotency: { header: Idempotency-Key }',
  'a look-up by task.key': `      find:
        request: GET /jobs
        query: { key: "\${{ task.key }}" }
        within: 1s
        capture:
          id: response.body.jobs[0].id`,
  neither: '',
} as const;
type Recovery = keyof typeof recoveries;

const points = [
  'before intent',
  'after intent',
  'request in flight',
  'after response',
  'after link',
  'after answer',
] as const;
type Point = (typeof points)[number];

function adapterText(recovery: Recovery): string {
  return `version: 1
name: crash
env: [UPSTREAM]
upstream: { driver: http, baseUrl: "\${{ env.UPSTREAM }}" }
tools:
  run:
    description: Runs a job.
    input: { type: object, properties: {} }
    create:
      request: POST /jobs
      json: { key: "\${{ task.key }}" }
${recoveries[recovery]}
      capture:
        id: response.body.id
    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done], failed: [failed] }
    timing: { every: 200ms, max: 1s, timeout: 1m, keep: 1m }
`;
}

/** Lets a child start a job and die; gives the id it had for the task. */
function crash(storePath: string, adapterFile: string, point: Point, upstream: JobUpstream): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL('crash-child.ts', import.meta.url)), storePath, adapterFile, point],
      { env: { ...process.env, UPSTREAM: upstream.url }, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    if (point === 'request in flight') upstream.onCreate = () => child.kill('SIGKILL');
    let id = '';
    let errors = '';
    child.stdout.on('data', (chunk) => {
      id += chunk;
    });
    child.stderr.on('data', (chunk) => {
      errors += chunk;
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      upstream.onCreate = undefined;
      if (signal === 'SIGKILL') resolve(id.trim());
      else reject(new Error(`the child ended with ${code}: ${errors}`));
    });
  });
}

describe.each(Object.keys(recoveries) as Recovery[])('an upstream with %s', (recovery) => {
  const open: { close(): Promise<unknown> }[] = [];
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });

  async function play(point: Point): Promise<{ upstream: JobUpstream; server: TestTaskferry; id: string }> {
    const folder = tempDir();
    const upstream = await startJobUpstream({ honoursKeys: recovery === 'an idempotency key' });
    open.push(upstream);
    const storePath = join(folder, 'tasks.db');
    const file = join(folder, 'crash.yaml');
    writeFileSync(file, adapterText(recovery));
    const id = await crash(storePath, file, point, upstream);
    const server = await startTaskferry({
      adapters: [file],
      environment: { UPSTREAM: upstream.url },
      storePath,
    });
    open.push(server);
    return { upstream, server, id };
  }

  const get = (server: TestTaskferry, taskId: string) => mcpRequest(server.url, 'tasks/get', { taskId });
  const ended = async (server: TestTaskferry, taskId: string) => {
    const { body } = await eventually(
      () => get(server, taskId),
      (reply) => reply.body.result?.status !== 'working',
      20_000,
    );
    return body.result;
  };

  it('has neither task nor job after a crash before the intent is stored', async () => {
    const { upstream, server, id } = await play('before intent');
    expect((await get(server, id)).body.error.code).toBe(-32602);
    expect(upstream.jobs).toHaveLength(0);
  });

  it.each(['after link', 'after answer'] as const)(
    'follows the one job to its end after a crash at the point "%s"',
    async (point) => {
      const { upstream, server, id } = await play(point);
      expect(await ended(server, id)).toMatchObject({
        status: 'completed',
        result: { resultType: 'complete' },
      });
      expect(upstream.jobs).toHaveLength(1);
    },
  );

  if (recovery !== 'neither') {
    it.each(['after intent', 'request in flight', 'after response'] as const)(
      'ends with exactly one job, followed to its end, after a crash at the point "%s"',
      async (point) => {
        const { upstream, server, id } = await play(point);
        expect(await ended(server, id)).toMatchObject({ status: 'completed' });
        expect(upstream.jobs).toHaveLength(1);
      },
      30_000,
    );
  } else {
    it.each([
      ['after intent', 0],
      ['request in flight', 1],
      ['after response', 1],
    ] as const)(
      'says that a job may exist, and creates no second one, after a crash at the point "%s"',
      async (point, jobs) => {
        const { upstream, server, id } = await play(point);
        const task = await ended(server, id);
        expect(task).toMatchObject({
          status: 'failed',
          error: { code: -32603, data: { reason: 'outcome_unknown' } },
        });
        expect(task.error.message).toContain('a job may exist upstream');
        expect(upstream.jobs).toHaveLength(jobs);
      },
    );
  }
});
