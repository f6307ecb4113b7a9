// The official MCP client with the official tasks helper, connected to one server over HTTP.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  createTaskSessionFromClient,
  type RawClientDispatch,
  type TaskEnabledSession,
  type WithTasksOptions,
} from '@modelcontextprotocol/ext-tasks/client';

const protocolVersion = '2026-07-28';
const clientInfo = { name: 'taskferry-demo', version: '1.0.0' };
const clientCapabilities = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };

export interface TaskClient {
  client: Client;
  session: TaskEnabledSession;
  close(): Promise<void>;
}

/** @param onInputRequest answers questions; without it a question cancels the job. */
export async function connectTaskClient(
  url: string,
  onInputRequest?: NonNullable<WithTasksOptions['onInputRequest']>,
): Promise<TaskClient> {
  const client = new Client(clientInfo, {
    capabilities: clientCapabilities,
    versionNegotiation: { mode: { pin: protocolVersion } },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const raw = await rawDispatch(url);
  const session = createTaskSessionFromClient(client, {
    endpointId: url,
    rawDispatch: raw.dispatch,
    v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
    ...(onInputRequest && { onInputRequest }),
  });
  return {
    client,
    session,
    async close() {
      await session.close();
      await raw.close();
      await client.close();
    },
  };
}

/** The tasks helper sends its own methods over a second transport, as the client only knows the core ones. */
async function rawDispatch(url: string): Promise<{ dispatch: RawClientDispatch; close(): Promise<void> }> {
  const transport = new StreamableHTTPClientTransport(new URL(url));
  type Reply = Awaited<ReturnType<RawClientDispatch>>;
  const waiting = new Map<string | number, (reply: Reply) => void>();
  transport.onmessage = (message) => {
    if (!('id' in message) || message.id === undefined || message.id === null) return;
    const resolve = waiting.get(message.id);
    waiting.delete(message.id);
    if ('error' in message) resolve?.({ kind: 'error', error: message.error } as Reply);
    else if ('result' in message) resolve?.({ kind: 'result', result: message.result } as Reply);
  };
  await transport.start();
  let count = 0;
  const dispatch: RawClientDispatch = (request) =>
    new Promise((resolve, reject) => {
      const id = `raw-${count++}`;
      waiting.set(id, resolve);
      transport
        .send({ jsonrpc: '2.0', id, ...(request as object) } as Parameters<typeof transport.send>[0])
        .catch((error) => {
          waiting.delete(id);
          // An error reply with an HTTP error status is thrown by the transport.
          if (typeof error?.code !== 'number') return reject(error);
          const { code, message, data } = error;
          resolve({ kind: 'error', error: { code, message, ...(data !== undefined && { data }) } } as Reply);
        });
    });
  return { dispatch, close: () => transport.close() };
}
