// A real little HTTP proxy on a free loopback port, closed with the test.

import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect as netConnect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface TestProxy {
  url: string;
  seen: { method: string; target: string; authorization: string | undefined; host: string | undefined }[];
}

/** Sends every host to the loopback port in its authority; `tunnels` decides about CONNECT. */
export async function serveProxy(tunnels: (socket: Socket) => boolean = () => true): Promise<TestProxy> {
  const seen: TestProxy['seen'] = [];
  const open = new Set<Socket>();
  const note = (request: IncomingMessage): void => {
    seen.push({
      method: request.method ?? '',
      target: request.url ?? '',
      authorization: request.headers['proxy-authorization'],
      host: request.headers.host,
    });
  };
  const server = createServer((request, response) => {
    note(request);
    const url = new URL(request.url ?? '');
    const onward = httpRequest(
      {
        host: '127.0.0.1',
        port: url.port,
        method: request.method,
        path: url.pathname + url.search,
        headers: request.headers,
      },
      (reply) => {
        response.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(response);
      },
    );
    request.pipe(onward);
  });
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => {});
  });
  server.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    note(request);
    if (!tunnels(client)) return;
    const upstream = netConnect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    open.add(upstream);
    upstream.on('error', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    for (const socket of open) socket.destroy();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}
