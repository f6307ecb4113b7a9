// Listening: which addresses are allowed, the port, which hosts and origins count as ours, an orderly end.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { localhostAllowedHostnames, localhostAllowedOrigins } from '@modelcontextprotocol/server';
import type { Settings } from '../config/settings.ts';
import { TaskferryError } from '../errors.ts';
import { createHttpApp, type HttpDeps } from './http.ts';

export interface HttpListener {
  /** Where MCP is served, by the address listened on. */
  url: string;
  /** Takes no new requests and lets those under way finish, for at most `graceMs`. */
  drain(graceMs: number): Promise<void>;
}

/** Against clients that send their request byte by byte. */
const headersTimeoutMs = 10_000;
const requestTimeoutMs = 30_000;

/**
 * Without authentication everybody who reaches the port is the one caller, so only this machine may.
 * @throws TaskferryError `listen_refused`
 */
export function refuseOpenBind(host: string): void {
  if (localhostAllowedHostnames().includes(bracketed(host)) || host.startsWith('127.')) return;
  throw new TaskferryError(
    'listen_refused',
    `taskferry does not listen on ${host}: it has no authentication yet`,
    { fix: 'listen on 127.0.0.1, and let a proxy that authenticates callers forward to it' },
  );
}

/** @throws TaskferryError `port_in_use`, `listen_failed` */
export async function listenOn(
  { host, port, publicUrl, hosts, origins }: Settings['listen'],
  parts: Omit<HttpDeps, 'hosts' | 'origins'>,
): Promise<HttpListener> {
  const publicHosts = publicUrl === undefined ? [] : [new URL(publicUrl).hostname];
  const app = createHttpApp({
    ...parts,
    hosts: [...localhostAllowedHostnames(), bracketed(host), ...hosts, ...publicHosts],
    origins: [...localhostAllowedOrigins(), ...origins.map(originHost), ...publicHosts],
  });
  const server = createServer({ headersTimeout: headersTimeoutMs, requestTimeout: requestTimeoutMs }, app);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen(port, host, resolve);
  });
  return {
    url: `http://${bracketed(host)}:${(server.address() as AddressInfo).port}/mcp`,
    async drain(graceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const cut = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(cut);
    },
  };
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): TaskferryError {
  if (error.code === 'EADDRINUSE') {
    return new TaskferryError('port_in_use', `port ${port} on ${host} is in use`, {
      cause: error,
      fix: 'stop what listens there, or choose another port with --port (0 takes a free one)',
    });
  }
  return new TaskferryError(
    'listen_failed',
    `can't listen on ${host}:${port}: ${error.code ?? error.message}`,
    { cause: error, fix: 'check --host and --port' },
  );
}

/** The SDK compares host names; an entry may be written as the full origin. */
function originHost(origin: string): string {
  return origin.includes('://') && !origin.endsWith('://*') ? new URL(origin).hostname : origin;
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}
