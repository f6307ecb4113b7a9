// A real HTTP(S) server on a free loopback port, with a handler that a test can change and a log of what came.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

export interface SeenRequest {
  method: string;
  /** Path and query as they came. */
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** Which connection it came on, from 1. */
  connection: number;
}

export type Handler = (request: SeenRequest, response: ServerResponse, raw: IncomingMessage) => void;

export interface TestServer {
  origin: string;
  port: number;
  /** Requests in the order in which their bodies were complete. */
  seen: SeenRequest[];
  /** Open connections. */
  sockets: Set<Socket>;
  handle(handler: Handler): void;
  /** Resolves with the log once it holds `count` requests. */
  waitFor(count: number): Promise<SeenRequest[]>;
  /** Destroys all connections and stops listening. */
  close(): Promise<void>;
}

/** Answers 200 `{}` until told otherwise. With `tls` it speaks https. */
export async function startHttpServer(
  handler: Handler = (_request, response) => json(response, 200, {}),
  tls?: ServerOptions,
): Promise<TestServer> {
  let current = handler;
  let connections = 0;
  const numbers = new WeakMap<Socket, number>();
  const sockets = new Set<Socket>();
  const seen: SeenRequest[] = [];
  const waiting = new Set<() => void>();

  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    request.on('end', () => {
      const entry: SeenRequest = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
        connection: numbers.get(request.socket) ?? 0,
      };
      seen.push(entry);
      for (const check of [...waiting]) check();
      current(entry, response, request);
    });
  };
  const server = tls ? createSecureServer(tls, listener) : createServer(listener);
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    numbers.set(socket, ++connections);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    seen,
    sockets,
    handle(next) {
      current = next;
    },
    waitFor(count) {
      return new Promise((resolve) => {
        const check = (): void => {
          if (seen.length < count) return;
          waiting.delete(check);
          resolve(seen);
        };
        waiting.add(check);
        check();
      });
    },
    async close() {
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Answers with a JSON body; text is sent as it is. */
export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: { [name: string]: string | string[] } = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}
