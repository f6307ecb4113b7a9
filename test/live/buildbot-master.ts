// A real Buildbot master with one worker, on loopback and in a folder of its own. Both can be killed and restarted.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Ports, workerName, workerPassword, writeMaster, writeWebStub } from './buildbot-files.ts';

export interface Build {
  buildid: number;
  number: number;
  complete: boolean;
  results: number | null;
}

export interface BuildRequest {
  buildrequestid: number;
  builderid: number;
  complete: boolean;
  results: number;
}

export interface BuildbotMaster {
  /** Base URL, without a slash at its end. */
  url: string;
  /** All build requests, oldest first. */
  requests(): Promise<BuildRequest[]>;
  /** The builds of one request, oldest first. */
  builds(requestId: number): Promise<Build[]>;
  /** Ids of builders by name. */
  builderIds(): Promise<{ [name: string]: number }>;
  /** SIGKILL, as in a crash. */
  killMaster(): Promise<void>;
  /** Resolves when the API answers. Does nothing while it runs. */
  startMaster(): Promise<void>;
  killWorker(): Promise<void>;
  /** Resolves when the master has the worker. Does nothing while it runs. */
  startWorker(): Promise<void>;
  close(): Promise<void>;
}

const readyLimitMs = 40_000;
const run = promisify(execFile);

export async function startBuildbot(): Promise<BuildbotMaster> {
  const folder = mkdtempSync(join(tmpdir(), 'taskferry-buildbot-'));
  try {
    return await start(folder);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function start(folder: string): Promise<BuildbotMaster> {
  const ports: Ports = { web: await freePort(), worker: await freePort() };
  const url = `http://127.0.0.1:${ports.web}`;
  const stub = join(folder, 'stub');
  writeWebStub(stub);
  const masterFolder = join(folder, 'master');
  await run('buildbot', ['create-master', '-r', masterFolder]);
  writeMaster(masterFolder, ports);
  const workerFolder = join(folder, 'worker');
  await run('buildbot-worker', [
    'create-worker',
    '--maxdelay=1',
    workerFolder,
    `127.0.0.1:${ports.worker}`,
    workerName,
    workerPassword,
  ]);

  let master: Process | undefined;
  let worker: Process | undefined;
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${url}/api/v2/${path}`, { headers: { accept: 'application/json' } });
    if (!response.ok) throw new Error(`GET ${path}: ${response.status}`);
    return (await response.json()) as T;
  };

  const buildbot: BuildbotMaster = {
    url,
    async requests() {
      const { buildrequests } = await get<{ buildrequests: BuildRequest[] }>(
        'buildrequests?order=buildrequestid',
      );
      return buildrequests;
    },
    async builds(requestId) {
      const { builds } = await get<{ builds: Build[] }>(`buildrequests/${requestId}/builds?order=buildid`);
      return builds;
    },
    async builderIds() {
      const { builders } = await get<{ builders: { name: string; builderid: number }[] }>('builders');
      return Object.fromEntries(builders.map(({ name, builderid }) => [name, builderid]));
    },
    async killMaster() {
      await master?.kill();
    },
    async startMaster() {
      if (master?.running()) return;
      master = startProcess('buildbot', masterFolder, { PYTHONPATH: stub });
      await master.until(async () => (await get<object>('builders')) !== undefined);
    },
    async killWorker() {
      await worker?.kill();
    },
    async startWorker() {
      if (worker?.running()) return;
      worker = startProcess('buildbot-worker', workerFolder, {});
      await worker.until(async () => {
        const { workers } = await get<{ workers: { connected_to: unknown[] }[] }>('workers');
        return workers.some((known) => known.connected_to.length > 0);
      });
    },
    async close() {
      await worker?.kill();
      await master?.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await buildbot.startMaster();
    await buildbot.startWorker();
  } catch (error) {
    await buildbot.close();
    throw error;
  }
  return buildbot;
}

interface Process {
  /** @throws when the process ends first, or after 40 s; the message holds what it wrote. */
  until(condition: () => Promise<boolean>): Promise<void>;
  kill(): Promise<void>;
  running(): boolean;
}

/** `buildbot` or `buildbot-worker` in the foreground, so that the child is the server itself. */
function startProcess(command: string, folder: string, env: { [name: string]: string }): Process {
  const log = join(folder, 'output.log');
  const output = openSync(log, 'w');
  const child = spawn(command, ['start', '--nodaemon', folder], {
    env: { ...process.env, ...env },
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  // A test run that is broken off must leave no server behind.
  const killNow = (): void => void child.kill('SIGKILL');
  process.once('exit', killNow);
  child.once('exit', () => process.off('exit', killNow));
  let failure: Error | undefined;
  child.once('error', (error) => {
    failure = error;
  });
  const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    async until(condition) {
      const limit = performance.now() + readyLimitMs;
      while (!(await condition().catch(() => false))) {
        if (failure) throw failure;
        if (ended() || performance.now() > limit)
          throw new Error(`${command} did not get ready:\n${readFileSync(log, 'utf8').slice(-4_000)}`);
        await sleep(50);
      }
    },
    kill: () => kill(child),
    running: () => !ended(),
  };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
