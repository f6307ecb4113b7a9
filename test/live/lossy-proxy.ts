// A proxy in front of a job system that passes everything on but loses one reply, as a bad network does.

import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LossyProxy {
  url: string;
  /** How often a request of the lossy kind was passed on. */
  sent(): number;
  close(): Promise<void>;
}

/**
 * @param target base URL of what stands behind.
 * @param loses which requests it loses: the first one of them is carried out, and its reply never arrives.
 */
export async function startLossyProxy(
  target: string,
  loses: (method: string, path: string) => boolean,
): Promise<LossyProxy> {
  let sent = 0;
  const server = createServer((incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming;
    const lossy = loses(method, url);
    if (lossy) sent++;
    const lost = lossy && sent === 1;
    const onward = request(new URL(url, target), { method, headers }, (reply) => {
      if (lost) {
        reply.resume();
        reply.once('end', () => outgoing.destroy());
        return;
      }
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(outgoing);
    });
    onward.once('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => sent,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
