// A real taskferry server in this process, on a free port and a store of its own.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAdapter, loadAdapterFile } from '../../src/config/load.ts';
import { adapterVariables } from '../../src/config/variables.ts';
import { formatProblem } from '../../src/errors.ts';
import {
  type AdapterEntry,
  formats,
  type RunningServer,
  type ServerOptions,
  startServer,
} from '../../src/server.ts';

export interface TestServer extends RunningServer {
  storePath: string;
}

export interface TestServerOptions {
  /** Files, or YAML texts (recognised by a line feed). */
  adapters: readonly string[];
  environment?: { [name: string]: string };
  /** Default: a new folder that is removed when the server closes. */
  storePath?: string;
  port?: number;
  logLevel?: ServerOptions['logLevel'];
}

export function loadEntry(source: string, environment: { [name: string]: string }): AdapterEntry {
  const loaded = source.includes('\n')
    ? loadAdapter(source, { file: 'adapter.yaml', formats })
    : loadAdapterFile(source, formats);
  const { adapter, problems } = loaded;
  if (adapter === undefined) throw new Error(problems.map(formatProblem).join('\n'));
  return {
    name: adapter.name,
    prefix: '',
    adapter,
    variables: adapterVariables(adapter, { environment }),
    tools: undefined,
  };
}

export async function startTaskferry(options: TestServerOptions): Promise<TestServer> {
  const { adapters, environment = {}, port = 0, logLevel = 'silent' } = options;
  const folder = options.storePath === undefined ? mkdtempSync(join(tmpdir(), 'taskferry-')) : undefined;
  const storePath = options.storePath ?? join(folder ?? '.', 'tasks.db');
  const server = await startServer({
    listen: { host: '127.0.0.1', port, publicUrl: undefined, hosts: [], origins: [] },
    storePath,
    adapters: adapters.map((source) => loadEntry(source, environment)),
    requestStateKeys: [],
    requestBytes: 4 * 1024 * 1024,
    logLevel,
    environment,
  });
  return {
    ...server,
    storePath,
    async close(graceMs) {
      await server.close(graceMs);
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}
