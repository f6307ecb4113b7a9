// The taskferry server under test: the real command line in a process of its own, with a probe inside.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { modernRequest } from '../test/helpers/mcp-request.ts';
import { adapterText } from './adapter.ts';
import { type Child, startChild } from './children.ts';
import type { Memory, RequestTemplate, Usage } from './messages.ts';

export interface Taskferry extends Child {
  /** Starts counting anew; without `loop` the delays of the event loop are not watched. */
  begin(loop: boolean): Promise<void>;
  usage(): Promise<Usage>;
  memory(): Promise<Memory>;
}

const probe = pathToFileURL(join(import.meta.dirname, 'probe.ts')).href;

export interface TaskferryOptions {
  /** Where its files go. */
  folder: string;
  upstream: string;
  /** Default: a new one in `folder`. */
  store?: string;
}

let stores = 0;

export async function startTaskferry({ folder, upstream, store }: TaskferryOptions): Promise<Taskferry> {
  const adapter = join(folder, 'bench.yaml');
  writeFileSync(adapter, adapterText);
  const path = store ?? join(folder, `tasks-${stores++}.db`);
  const child = await startChild(join('..', 'bin', 'taskferry.js'), {
    args: ['serve', '--adapter', adapter, '--store', `sqlite:${path}`, '--port', '0'],
    execArgv: ['--expose-gc', '--import', probe],
    env: { BENCH_UPSTREAM: upstream },
    readyLine: /ready at (http:\/\/[^/]+)\/mcp/,
  });
  return {
    ...child,
    async begin(loop) {
      await child.ask({ kind: 'begin', loop });
    },
    usage: () => child.ask<Usage>({ kind: 'usage' }),
    memory: () => child.ask<Memory>({ kind: 'memory' }),
  };
}

/** One MCP request as the load generator sends it. */
export function mcp(method: string, params: { [name: string]: unknown }): RequestTemplate {
  return { path: '/mcp', method: 'POST', ...modernRequest(method, params) };
}

export function callOf(tool: string): RequestTemplate {
  return mcp('tools/call', { name: tool, arguments: { branch: 'main' } });
}
