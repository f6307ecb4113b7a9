// A real taskferry server in this process, on a free port and a store of its own.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadRegistry } from '../../src/config/registry.ts';
import { loadSettings } from '../../src/config/settings.ts';
import { formatProblem, type Problem } from '../../src/errors.ts';
import { formats, type RunningServer, startServer } from '../../src/server.ts';

export interface TestTaskferry extends RunningServer {
  storePath: string;
}

export interface TestTaskferryOptions {
  /** Files, or YAML texts (recognised by a line feed). */
  adapters: readonly string[];
  environment?: { [name: string]: string };
  /** Default: a new folder that is removed when the server closes. */
  storePath?: string;
  port?: number;
  logLevel?: 'silent' | 'debug' | 'info';
}

export async function startTaskferry(options: TestTaskferryOptions): Promise<TestTaskferry> {
  const { adapters, environment = {}, port = 0, logLevel = 'silent' } = options;
  const folder = mkdtempSync(join(tmpdir(), 'taskferry-'));
  const storePath = options.storePath ?? join(folder, 'tasks.db');
  const files = adapters.map((source, index) => {
    if (!source.includes('\n')) return source;
    const file = join(folder, `adapter-${index}.yaml`);
    writeFileSync(file, source);
    return file;
  });
  const { settings, problems } = loadSettings({
    flags: { adapters: files, store: `sqlite:${storePath}`, port: String(port) },
    environment: { TASKFERRY_LOG_LEVEL: logLevel },
    cwd: folder,
  });
  const loaded = settings && loadRegistry(settings.adapters, { formats, environment });
  const { registry } = loaded ?? {};
  if (settings === undefined || registry === undefined)
    throw refused([...problems, ...(loaded?.problems ?? [])]);
  const server = await startServer({ settings, adapters: registry.adapters, environment });
  return {
    ...server,
    storePath,
    async close(graceMs) {
      await server.close(graceMs);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function refused(problems: readonly Problem[]): Error {
  return new Error(problems.map(formatProblem).join('\n'));
}
