// The MCP server on the official SDK: which methods it serves and the few seams where the SDK has to be helped.
//
// Two seams, each guarded by a test: tools/call results of a low-level Server get `content: []` added even when
// they are a task (removed in `_wrapHandler`), and `Mcp-Param-*` headers are only checked when the factory returns
// an McpServer that knows the input schemas (`toolInputSchemaJson`).

import {
  createMcpHandler,
  type McpHttpHandler,
  McpServer,
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
  type ServerOptions,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { sentenceOf, TaskferryError } from '../errors.ts';
import type { Log } from '../observability/log.ts';
import type { Catalog } from './catalog.ts';
import { tasksExtension } from './request.ts';
import { cancelTask, getTask, type TasksDeps, updateTask } from './tasks-methods.ts';
import { type CallDeps, callTool } from './tools-call.ts';
import { listTools } from './tools-list.ts';

export interface McpDeps extends TasksDeps, CallDeps {
  version: string;
  log: Log;
}

const taskParams = { params: z.looseObject({ taskId: z.string().min(1) }) };
const toolsListTtlMs = 60_000;

class TaskServer extends Server {
  readonly #log: Log;

  constructor(info: { name: string; version: string }, options: ServerOptions, log: Log) {
    super(info, options);
    this.#log = log;
  }

  protected override _wrapHandler(
    method: string,
    handler: (request: never, context: ServerContext) => Promise<Result>,
  ): ReturnType<Server['_wrapHandler']> {
    // The SDK's own signature is wider than what can be named here; the handler is passed through as it is.
    const base = super._wrapHandler(method, handler as Parameters<Server['_wrapHandler']>[1]);
    return async (request, context) => {
      const result = await base(request, context).catch((error: unknown) => {
        throw toProtocolError(error, method, this.#log);
      });
      if (method !== 'tools/call' || result.resultType !== 'task') return result;
      const { content: _, ...task } = result;
      return task as Result;
    };
  }
}

/** What a client is told of a failure: our own sentences as they are, of anything unforeseen only that it happened. */
function toProtocolError(error: unknown, method: string, log: Log): ProtocolError {
  if (error instanceof ProtocolError) return error;
  log.error({ err: error, method }, 'an MCP request failed');
  if (!(error instanceof TaskferryError))
    return new ProtocolError(ProtocolErrorCode.InternalError, 'Internal error');
  return new ProtocolError(ProtocolErrorCode.InternalError, sentenceOf(error), { reason: error.code });
}

/** An McpServer in name: the SDK checks parameter headers only for one. It serves through {@link TaskServer}. */
class AdapterServer extends McpServer {
  readonly #catalog: Catalog;

  constructor(info: { name: string; version: string }, options: ServerOptions, { catalog, log }: McpDeps) {
    super(info, {});
    this.#catalog = catalog;
    // `server` is readonly for users of the SDK; replacing it is what makes the low-level handlers possible.
    (this as { server: Server }).server = new TaskServer(info, options, log);
  }

  override toolInputSchemaJson(name: string): ReturnType<McpServer['toolInputSchemaJson']> {
    return this.#catalog.byName(name)?.tool.input as ReturnType<McpServer['toolInputSchemaJson']>;
  }
}

export function createMcp(deps: McpDeps): McpHttpHandler {
  const info = { name: 'taskferry', version: deps.version };
  const factory: McpServerFactory = ({ era }) => {
    const modern = era === 'modern';
    const options: ServerOptions = {
      capabilities: { tools: {}, ...(modern && { extensions: { [tasksExtension]: {} } }) },
      requestState: { verify: deps.codec.verify },
      cacheHints: { 'tools/list': { ttlMs: toolsListTtlMs, cacheScope: 'private' } },
    };
    const mcp = new AdapterServer(info, options, deps);
    const { server } = mcp;
    server.setRequestHandler('tools/list', (_request, context) => listTools(deps.catalog, context) as never);
    server.setRequestHandler(
      'tools/call',
      async (request, context) => (await callTool(deps, request.params, context)) as never,
    );
    if (modern) {
      server.setRequestHandler('tasks/get', taskParams, (params, context) =>
        getTask(deps, params.taskId, context),
      );
      server.setRequestHandler('tasks/update', taskParams, (params, context) =>
        updateTask(deps, params.taskId, context),
      );
      server.setRequestHandler('tasks/cancel', taskParams, (params, context) =>
        cancelTask(deps, params.taskId, context),
      );
    }
    return mcp;
  };
  return createMcpHandler(factory, {
    onerror: (error) => deps.log.debug({ err: error }, 'an MCP request was refused'),
  });
}
