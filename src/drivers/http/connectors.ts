// How sockets are opened: directly, with a check of the address, or through a proxy's tunnel.

import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { isPrivateAddress } from './addresses.ts';
import { proxyAuthorization } from './proxy.ts';

export type Connector = buildConnector.connector;

export interface ConnectorOptions {
  /** Milliseconds for one connection, TLS included. */
  timeout: number;
  /** PEM certificates to trust; undefined: the default ones. */
  ca: string[] | undefined;
  /** Shown to a host that asks for it; never to a proxy. */
  client: { cert: string; key: string; passphrase?: string } | undefined;
  /** The name the host's certificate must have; undefined: the host's own. */
  servername: string | undefined;
  /** How names are resolved. Default: the system's way. */
  lookup: LookupFunction | undefined;
}

/** A connection that was not made on purpose; the message is for people. */
export class ConnectRefused extends Error {
  override readonly name = 'ConnectRefused';
}

export function directConnector({ timeout, ca, client, servername, lookup }: ConnectorOptions): Connector {
  const connect = buildConnector({
    timeout,
    allowH2: false,
    ...(ca && { ca }),
    ...client,
    ...(lookup && { lookup }),
  } as buildConnector.BuildOptions);
  if (servername === undefined) return connect;
  return (target, callback) => connect({ ...target, servername }, callback);
}

/**
 * Connects to public addresses only. The resolver is wrapped, since a name may resolve to something else at each
 * connect; literal addresses and the peer are checked too, since a resolver is not asked for them.
 */
export function guardedConnector(options: ConnectorOptions): Connector {
  const connect = directConnector({ ...options, lookup: publicLookup(options.lookup ?? systemLookup) });
  return (target, callback) => {
    if (isIP(target.hostname) !== 0 && isPrivateAddress(target.hostname)) {
      callback(privateAddress(target.hostname), null);
      return;
    }
    connect(target, (...[error, socket]) => {
      if (error !== null && error !== undefined) return callback(error, null);
      if (socket === null || socket === undefined) return callback(new ConnectRefused('no socket'), null);
      if (isPrivateAddress(socket.remoteAddress ?? '')) {
        socket.destroy();
        return callback(privateAddress(target.hostname), null);
      }
      callback(null, socket);
    });
  };
}

/**
 * Tunnels through `proxy` (CONNECT). With `guarded` a literal private address is refused; a name is resolved by
 * the proxy, so its address can't be checked here.
 */
export function tunnelConnector(proxy: URL, guarded: boolean, options: ConnectorOptions): Connector {
  const toProxy = directConnector({ ...options, client: undefined, servername: undefined });
  const secure = directConnector(options);
  return (target, callback) => {
    if (guarded && isIP(target.hostname) !== 0 && isPrivateAddress(target.hostname)) {
      callback(privateAddress(target.hostname), null);
      return;
    }
    const port = target.port || (target.protocol === 'https:' ? '443' : '80');
    const authority = `${target.hostname.includes(':') ? `[${target.hostname}]` : target.hostname}:${port}`;
    const fail = (error: Error): void => callback(error, null);
    toProxy(proxyTarget(proxy), (...[error, socket]) => {
      if (error !== null && error !== undefined) return fail(error);
      if (socket === null || socket === undefined) return fail(new ConnectRefused('no socket'));
      openTunnel(socket, authority, proxyAuthorization(proxy), options.timeout).then(() => {
        if (target.protocol === 'https:') secure({ ...target, httpSocket: socket }, callback);
        else callback(null, socket);
      }, fail);
    });
  };
}

function proxyTarget(proxy: URL): buildConnector.Options {
  return {
    hostname: proxy.hostname.replace(/^\[|\]$/g, ''),
    host: proxy.host,
    protocol: proxy.protocol,
    port: proxy.port,
  };
}

/** Most bytes of a proxy's answer to CONNECT. */
const maxTunnelReply = 16 * 1024;

function openTunnel(
  socket: Socket,
  authority: string,
  authorization: string | undefined,
  timeout: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const stop = (): void => {
      clearTimeout(timer);
      socket.off('data', onData).off('error', onError).off('close', onClose);
    };
    const fail = (error: Error): void => {
      stop();
      socket.on('error', () => {}).destroy();
      reject(error);
    };
    const timer = setTimeout(
      () => fail(new ConnectRefused(`the proxy did not open a tunnel to ${authority} in time`)),
      timeout,
    );
    const onError = (error: Error): void => fail(error);
    const onClose = (): void =>
      fail(new ConnectRefused(`the proxy closed the connection instead of opening a tunnel to ${authority}`));
    const onData = (chunk: Buffer): void => {
      received = Buffer.concat([received, chunk]);
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) {
        if (received.length > maxTunnelReply) fail(new ConnectRefused('the proxy sent no answer to CONNECT'));
        return;
      }
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(received.toString('latin1', 0, end))?.[1] ?? 'no status';
      if (!status.startsWith('2')) {
        fail(new ConnectRefused(`the proxy refused a tunnel to ${authority} (${status})`));
        return;
      }
      stop();
      socket.pause();
      if (received.length > end + 4) socket.unshift(received.subarray(end + 4));
      resolve();
    };
    socket.on('data', onData).on('error', onError).on('close', onClose);
    socket.write(
      `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${
        authorization === undefined ? '' : `Proxy-Authorization: ${authorization}\r\n`
      }\r\n`,
    );
  });
}

function publicLookup(resolve: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, options, (error, address, family) => {
      if (error) return callback(error, address, family);
      const found = typeof address === 'string' ? [address] : address.map((entry) => entry.address);
      // One private address among public ones is enough: which one is taken is not ours to choose.
      if (found.length === 0 || found.some(isPrivateAddress))
        return callback(privateAddress(hostname), '', 0);
      callback(null, address, family);
    });
  };
}

function privateAddress(host: string): ConnectRefused {
  return new ConnectRefused(
    `${host} has a private or local address; a host admitted by a wildcard of allowHosts can't (name it there to allow it)`,
  );
}
