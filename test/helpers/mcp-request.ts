// One raw MCP request over HTTP, for what a client library would hide or refuse to send.

import { CreateTaskResultV2Schema, GetTaskResultV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';

export const tasksCapability = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
export const allCapabilities = { ...tasksCapability, elicitation: {} };

export interface RawReply {
  status: number;
  // Tests look into replies freely; the shapes are what is being tested.
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  body: any;
}

export interface RawOptions {
  /** What this very request declares. Default: tasks and elicitation. */
  capabilities?: object;
  /** Further members of `_meta`. */
  meta?: object;
  headers?: { [name: string]: string };
  signal?: AbortSignal;
}

/** Headers and body of a request of the 2026-07-28 revision. */
export function modernRequest(
  method: string,
  params: { [name: string]: unknown },
  { capabilities = allCapabilities, meta = {}, headers = {} }: RawOptions = {},
): { headers: { [name: string]: string }; body: string } {
  const name = params.taskId ?? params.name;
  return {
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': capabilities,
          ...meta,
        },
      },
    }),
  };
}

export async function mcpRequest(
  url: string,
  method: string,
  params: { [name: string]: unknown },
  options: RawOptions = {},
): Promise<RawReply> {
  const request = modernRequest(method, params, options);
  const reply = await fetch(url, {
    method: 'POST',
    ...request,
    ...(options.signal && { signal: options.signal }),
  });
  const body = JSON.parse(await reply.text());
  checkTaskMessage(body.result);
  return { status: reply.status, body };
}

/** Every task message that a test receives has to satisfy the extension's own schemas. */
function checkTaskMessage(result: { taskId?: string; resultType?: string } | undefined): void {
  if (result?.taskId === undefined) return;
  if (result.resultType === 'task') CreateTaskResultV2Schema.parse(result);
  else GetTaskResultV2Schema.parse(result);
}
