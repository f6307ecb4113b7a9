// The command line as a person meets it: real processes, their output and exit codes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from './helpers/eventually.ts';
import { mcpRequest, modernRequest } from './helpers/mcp-request.ts';
import { tempDir } from './helpers/temp-dir.ts';
import { startJobUpstream } from './tasks/job-upstream.ts';

const bin = fileURLToPath(new URL('../bin/taskferry.js', import.meta.url));
const demo = fileURLToPath(new URL('../demo/demo.yaml', import.meta.url));

interface Run {
  child: ChildProcess;
  out: { stdout: string; stderr: string };
  exit: Promise<number | null>;
}

function run(
  args: string[],
  { cwd, env = {} }: { cwd?: string; env?: { [name: string]: string } } = {},
): Run {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: cwd ?? tempDir(),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const out = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    out.stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    out.stderr += chunk;
  });
  return { child, out, exit: once(child, 'close').then(([code]) => code as number | null) };
}

async function finished(args: string[], options?: Parameters<typeof run>[1]) {
  const { out, exit } = run(args, options);
  return { code: await exit, ...out };
}

async function ready(args: string[], options?: Parameters<typeof run>[1]) {
  const process = run(['serve', '--port', '0', ...args], options);
  const line = await eventually(
    () => /^taskferry .* ready at .*$/m.exec(process.out.stderr)?.[0],
    (found) => found !== undefined,
    15_000,
  );
  return { ...process, line: line ?? '', url: /at (\S+)/.exec(line ?? '')?.[1] ?? '' };
}

/** A tool whose job is looked at once a minute. */
const slowAdapter = `version: 1
name: slow
env: [UPSTREAM]
upstream: { driver: http, baseUrl: "\${{ env.UPSTREAM }}" }
tools:
  run:
    description: Runs a job.
    input: { type: object, properties: {} }
    create: { request: POST /jobs, json: {}, capture: { id: response.body.id } }
    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done], cancelled: [cancelled] }
    cancel: { request: "POST /jobs/\${{ job.id }}/cancel" }
    timing: { every: 1m }
`;

/** A server in front of an upstream of its own, by one adapter. */
async function readyWithUpstream(adapter = slowAdapter) {
  const upstream = await startJobUpstream();
  onTestFinished(() => upstream.close());
  const cwd = tempDir();
  writeFileSync(join(cwd, 'a.yaml'), adapter);
  const server = await ready(['--adapter', './a.yaml'], { cwd, env: { UPSTREAM: upstream.url } });
  return { upstream, ...server };
}

/** The HTTP status of one tasks/get; undefined when nobody answers any more. */
function rawStatus(url: string, agent: Agent, taskId: string): Promise<number | undefined> {
  const { headers, body } = modernRequest('tasks/get', { taskId });
  return new Promise((resolve) => {
    const request = httpRequest(url, { method: 'POST', headers, agent }, (reply) => {
      reply.resume().once('end', () => resolve(reply.statusCode));
    });
    request.once('error', () => resolve(undefined));
    request.end(body);
  });
}

describe('taskferry', () => {
  it.each([['--help'], ['-h'], ['help'], ['serve', '--help']])(
    '%s %s explains itself and succeeds',
    async (...args) => {
      const { code, stdout, stderr } = await finished(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain('taskferry serve [options]');
    },
  );

  it('prints its version', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(await finished(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it.each([
    [['sevre'], 'there is no command "sevre"'],
    [['serve', '--prot', '1'], '--prot'],
    [['serve', 'demo.yaml'], 'demo.yaml'],
    [['check'], 'check needs the files to check'],
    [['check', '--strict'], 'check has no option --strict'],
  ])('answers the wrong command line %j with exit code 2', async (args, message) => {
    const { code, stdout, stderr } = await finished(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });
});

describe('taskferry check', () => {
  it('names the tools of a good adapter', async () => {
    const { code, stdout } = await finished(['check', demo]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `${demo}: demo, tools demo_render, demo_test, demo_deploy\n`,
    });
  });

  it('points at the line of a mistake and fails', async () => {
    const folder = tempDir();
    const file = join(folder, 'bad.yaml');
    writeFileSync(file, readFileSync(demo, 'utf8').replace('    cancel:', '    cancell:'));
    const { code, stdout } = await finished(['check', file]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/bad\.yaml:\d+:5 tools\.demo_render\.cancell: .*cancel/);
  });
});

describe('taskferry serve', () => {
  it('says in one line where it is and what it offers', async () => {
    const { line } = await ready(['--adapter', demo]);
    expect(line).toMatch(
      /^taskferry \S+ ready at http:\/\/127\.0\.0\.1:\d+\/mcp with tools demo_render, demo_test, demo_deploy$/,
    );
  });

  it('works with the example settings as they are', async () => {
    const example = fileURLToPath(new URL('../config/taskferry.yaml', import.meta.url));
    const { line } = await ready(['--config', example, '--store', 'sqlite:tasks.db']);
    expect(line).toContain('ready at');
  });

  it('starts nothing when an adapter has a mistake', async () => {
    const cwd = tempDir();
    writeFileSync(join(cwd, 'bad.yaml'), 'version: 1\nname: bad\n\ttabs: true\n');
    const { code, stderr } = await finished(['serve', '--adapter', './bad.yaml'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toMatch(/bad\.yaml:3:1 .*tab/i);
    expect(stderr).toContain('nothing was started');
    expect(existsSync(join(cwd, 'taskferry.db'))).toBe(false);
  });

  it.each([
    ['does not exist', ['--adapter', './nope.yaml'], /nope\.yaml: the file does not exist/],
    ['is no shipped one', ['--adapter', 'nope'], /there is no shipped adapter "nope"/],
  ])('says so when an adapter %s', async (_what, args, message) => {
    const { code, stderr } = await finished(['serve', ...args]);
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
  });

  it('names the variable that is not set, and its line', async () => {
    const cwd = tempDir();
    writeFileSync(
      join(cwd, 'a.yaml'),
      readFileSync(demo, 'utf8').replace('  DEMO_URL: { default: http://127.0.0.1:3738 }', '  DEMO_URL:'),
    );
    const { code, stderr } = await finished(['serve', '--adapter', './a.yaml'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toMatch(/a\.yaml:\d+:\d+ env: the variable DEMO_URL of demo is not set/);
  });

  it('says that an address is no URL before it serves it, and leaves no store behind', async () => {
    const cwd = tempDir();
    const { code, stderr } = await finished(['serve', '--adapter', demo], {
      cwd,
      env: { DEMO_URL: '127.0.0.1:3738/v1' },
    });
    expect(code).toBe(1);
    expect(stderr).toContain('demo.yaml: upstream: baseUrl is not an absolute http or https URL');
    expect(existsSync(join(cwd, 'taskferry.db'))).toBe(false);
  });

  it('says which port is in use and what to do', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await finished(['serve', '--adapter', demo, '--port', String(port)]);
    expect(code).toBe(1);
    expect(stderr).toContain(`port ${port} on 127.0.0.1 is in use`);
    expect(stderr).toContain('--port');
  });

  it('listens on this machine only, as it has no authentication yet', async () => {
    const { code, stderr } = await finished(['serve', '--adapter', demo, '--host', '0.0.0.0']);
    expect(code).toBe(1);
    expect(stderr).toContain('does not listen on 0.0.0.0');
  });

  it('refuses a store that another process uses', async () => {
    const cwd = tempDir();
    await ready(['--adapter', demo], { cwd });
    const { code, stderr } = await finished(['serve', '--adapter', demo, '--port', '0'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toMatch(/another taskferry process is using the store .*taskferry\.db .*--store/);
  });

  it('keeps standard output empty', async () => {
    const { out } = await ready(['--adapter', demo]);
    expect(out.stdout).toBe('');
  });

  it('finishes what is under way on SIGTERM, leaves the upstream job alone and exits with 0', async () => {
    const { upstream, child, exit, url, out } = await readyWithUpstream();
    let answerCreate = (): void => {};
    upstream.intercept = (request, response) => {
      if (request.method !== 'POST') return false;
      answerCreate = () => response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":1}');
      return true;
    };
    const call = mcpRequest(url, 'tools/call', { name: 'run', arguments: {} });
    await eventually(
      () => upstream.requests.length,
      (count) => count === 1,
    );
    child.kill('SIGTERM');
    await eventually(
      () => out.stderr,
      (text) => text.includes('SIGTERM'),
    );
    answerCreate();
    expect((await call).body.result).toMatchObject({ resultType: 'task' });
    expect(await exit).toBe(0);
    expect(upstream.requests.filter((line) => line.includes('cancel'))).toEqual([]);
  });

  it('tells a client that waits for a job that it goes on, on SIGTERM', async () => {
    const { upstream, child, exit, url } = await readyWithUpstream();
    const call = mcpRequest(url, 'tools/call', { name: 'run', arguments: {} }, { capabilities: {} });
    await eventually(
      () => upstream.jobs.length,
      (count) => count === 1,
    );
    const health = await fetch(new URL('/healthz', url));
    expect(health.status).toBe(200);
    child.kill('SIGTERM');
    expect((await call).body.result.content[0].text).toContain('run is still running and goes on');
    expect(await exit).toBe(0);
  });

  it('stops within seconds on SIGTERM though a poll still waits for its upstream', async () => {
    const { upstream, child, exit, url } = await readyWithUpstream(
      slowAdapter.replace('every: 1m', 'every: 100ms'),
    );
    upstream.intercept = (request) => request.method === 'GET';
    await mcpRequest(url, 'tools/call', { name: 'run', arguments: {} });
    await eventually(
      () => upstream.requests,
      (seen) => seen.includes('GET /jobs/1'),
    );
    const before = performance.now();
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
    expect(performance.now() - before).toBeLessThan(15_000);
  });

  it('refuses what a busy connection still sends after SIGTERM', async () => {
    const { child, exit, url } = await readyWithUpstream();
    const { body } = await mcpRequest(url, 'tools/call', { name: 'run', arguments: {} });
    const id = body.result.taskId;
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    child.kill('SIGTERM');
    const answers: number[] = [];
    for (let round = 0; round < 200; round++) {
      const status = await rawStatus(url, agent, id);
      if (status === undefined) break;
      answers.push(status);
    }
    expect(answers.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect(answers.length).toBeLessThan(200);
    expect(await exit).toBe(0);
  });
});
