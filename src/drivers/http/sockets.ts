// The sockets of one connection: pools per route and origin, kept alive, closed together.

import { readFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { getCACertificates } from 'node:tls';
import { Agent, Client, type Dispatcher } from 'undici';
import {
  type Connector,
  type ConnectorOptions,
  ConnectRefused,
  directConnector,
  guardedConnector,
  tunnelConnector,
} from './connectors.ts';

/** How a request reaches its host. */
export interface Route {
  /** The origin that sockets are opened to; a forwarding proxy's, or the host's own. */
  origin: string;
  /** The host must have a public address. */
  guarded: boolean;
  /** Tunnel through this proxy. */
  tunnel: URL | undefined;
}

/** What is known of a failure beyond its error. */
interface FailureFacts {
  /** The connection could not be made: the upstream never got the request. */
  connecting: boolean;
  /** The socket had been opened for an earlier request. */
  keptAlive: boolean;
}

export interface Sockets {
  /** A dispatcher with kept-alive sockets. @throws ConnectRefused when the CA file can't be read. */
  pooled(route: Route): Dispatcher;
  /** A dispatcher for a single request on a new socket; the caller destroys it. */
  fresh(route: Route): Dispatcher;
  /** A mark to hand to {@link Sockets.facts}, taken before a request is dispatched. */
  mark(): number;
  facts(error: Error, mark: number): FailureFacts;
  /** Destroys all sockets; exchanges under way fail. */
  close(): Promise<void>;
}

export interface SocketOptions {
  connectTimeout: number;
  /** PEM file. */
  caFile: string | undefined;
  lookup: LookupFunction | undefined;
}

export function createSockets({ connectTimeout, caFile, lookup }: SocketOptions): Sockets {
  const agents = new Map<string, Agent>();
  const connectErrors = new WeakSet<Error>();
  /** For errors of open sockets: how many sockets had been opened when theirs was. */
  const openedAt = new WeakMap<Error, number>();
  let opened = 0;
  let ca: string[] | undefined;

  const watched =
    (connect: Connector): Connector =>
    (target, callback) => {
      connect(target, (...[error, socket]) => {
        if (socket === null || socket === undefined) {
          const failure = error ?? new ConnectRefused('no socket');
          connectErrors.add(failure);
          callback(failure, null);
          return;
        }
        const serial = ++opened;
        socket.on('error', (failure) => openedAt.set(failure, serial));
        callback(null, socket);
      });
    };

  const connector = ({ guarded, tunnel }: Route): Connector => {
    if (caFile !== undefined && ca === undefined) ca = [...getCACertificates('default'), readCa(caFile)];
    const options: ConnectorOptions = { timeout: connectTimeout, ca, lookup };
    if (tunnel !== undefined) return watched(tunnelConnector(tunnel, guarded, options));
    return watched(guarded ? guardedConnector(options) : directConnector(options));
  };

  return {
    pooled(route) {
      const key = `${route.guarded} ${route.tunnel?.href ?? ''}`;
      let agent = agents.get(key);
      if (agent === undefined) {
        agent = new Agent({
          connect: connector(route),
          pipelining: 1,
          allowH2: false,
          clientTtl: socketLifetime,
        });
        agents.set(key, agent);
      }
      return agent;
    },
    fresh: (route) => new Client(route.origin, { connect: connector(route), pipelining: 1, allowH2: false }),
    mark: () => opened,
    facts: (error, mark) => ({
      connecting: connectErrors.has(error),
      keptAlive: (openedAt.get(error) ?? Number.POSITIVE_INFINITY) <= mark,
    }),
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()));
    },
  };
}

/** Milliseconds after which a pool opens new sockets, so that a host that moved is found again. */
const socketLifetime = 5 * 60_000;

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConnectRefused(
      `upstream.ca can't be read: ${file} (${(error as NodeJS.ErrnoException).code ?? error})`,
    );
  }
}
