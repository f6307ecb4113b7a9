// The sockets of one connection: pools per route and origin, kept alive, closed together.

import type { LookupFunction } from 'node:net';
import { Agent, Client, type Dispatcher } from 'undici';
import {
  type Connector,
  type ConnectorOptions,
  ConnectRefused,
  directConnector,
  guardedConnector,
  tunnelConnector,
} from './connectors.ts';
import { isReset, refusesCertificate } from './faults.ts';
import type { TlsMaterial } from './tls-material.ts';

/** How a request reaches its host. */
export interface Route {
  /** The origin that sockets are opened to; a forwarding proxy's, or the host's own. */
  origin: string;
  /** The host must have a public address. */
  guarded: boolean;
  /** Tunnel through this proxy. */
  tunnel: URL | undefined;
  /** own: the upstream itself. trusted: another host that gets credentials. other: gets no client certificate. */
  peer: 'own' | 'trusted' | 'other';
}

/** What is known of a failure beyond its error. */
interface FailureFacts {
  /** The connection could not be made: the upstream never got the request. */
  connecting: boolean;
  /** The socket had been opened for an earlier request. */
  keptAlive: boolean;
  /** The host's own word for it, where the client lost it: it refused the client certificate of a new socket. */
  refusal: Error | undefined;
}

export interface Sockets {
  /** A dispatcher with kept-alive sockets. @throws ConnectRefused, RequestFault when certificates can't be used. */
  pooled(route: Route): Dispatcher;
  /** A dispatcher for a single request on a new socket; the caller destroys it. */
  fresh(route: Route): Dispatcher;
  /** A mark to hand to {@link Sockets.facts}, taken before a request is dispatched. */
  mark(): number;
  facts(error: Error, mark: number, origin: string): FailureFacts;
  /** Destroys all sockets; exchanges under way fail. */
  close(): Promise<void>;
}

export interface SocketOptions {
  connectTimeout: number;
  material(): TlsMaterial;
  lookup: LookupFunction | undefined;
}

export function createSockets({ connectTimeout, material, lookup }: SocketOptions): Sockets {
  const agents = new Map<string, Agent>();
  const connectErrors = new WeakSet<Error>();
  /** For errors of open sockets: how many sockets had been opened when theirs was. */
  const openedAt = new WeakMap<Error, number>();
  /** By origin: the last socket whose client certificate was refused. */
  const refusals = new Map<string, { serial: number; error: Error }>();
  let opened = 0;
  const retired = new Set<Agent>();
  let version: number | undefined;

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
        socket.on('error', (error) => {
          openedAt.set(error, serial);
          if (refusesCertificate(error))
            refusals.set(`${target.protocol}//${target.host}`, { serial, error });
        });
        callback(null, socket);
      });
    };

  const connector = ({ guarded, tunnel, peer }: Route): Connector => {
    const { ca, client, servername } = material();
    const options: ConnectorOptions = {
      timeout: connectTimeout,
      ca,
      client: peer === 'other' ? undefined : client,
      servername: peer === 'own' ? servername : undefined,
      lookup,
    };
    if (tunnel !== undefined) return watched(tunnelConnector(tunnel, guarded, options));
    return watched(guarded ? guardedConnector(options) : directConnector(options));
  };

  /** Exchanges under way end as they are; nothing new goes over sockets of another certificate. */
  const retireIfChanged = (now: number): void => {
    if (version !== now) {
      for (const agent of agents.values()) {
        retired.add(agent);
        agent.close().then(
          () => retired.delete(agent),
          () => retired.delete(agent),
        );
      }
      agents.clear();
    }
    version = now;
  };

  return {
    pooled(route) {
      retireIfChanged(material().version);
      const key = `${route.peer} ${route.guarded} ${route.tunnel?.href ?? ''}`;
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
    facts: (error, mark, origin) => {
      const refusal = refusals.get(origin);
      return {
        connecting: connectErrors.has(error),
        keptAlive: (openedAt.get(error) ?? Number.POSITIVE_INFINITY) <= mark,
        refusal: refusal !== undefined && refusal.serial > mark && isReset(error) ? refusal.error : undefined,
      };
    },
    async close() {
      await Promise.all([...agents.values(), ...retired].map((agent) => agent.destroy()));
    },
  };
}

/** Milliseconds after which a pool opens new sockets, so that a host that moved is found again. */
const socketLifetime = 5 * 60_000;
