// `taskIds` on subscriptions/listen, which the SDK's listen router doesn't know: a wrapper around the SDK's fetch.
//
// The SDK serves the request without `taskIds`, so all of its checks apply; its acknowledgement is completed with
// the ids this caller may follow and goes out first, then the state of each such task, then every change. A frame
// is a full state, so a reader that is slower than the changes only gets the newest one of each task.

import {
  type McpHandlerRequestOptions,
  type McpHttpHandler,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { Metrics } from '../observability/metrics.ts';
import { capabilitiesIn, declaresElicitation, declaresTasks, rpcError, tasksRequired } from './request.ts';
import { type StreamDeps, TaskStream } from './task-stream.ts';

export interface ListenDeps extends StreamDeps {
  metrics: Metrics;
}

export interface TaskListen {
  fetch: McpHttpHandler['fetch'];
  /** Ends every stream with its result, as the server is about to stop. */
  closeAll(): void;
}

const maxStreams = 1_024;
const maxIdsPerStream = 1_000;

interface ListenBody {
  id: string | number;
  method: 'subscriptions/listen';
  params: {
    notifications: { taskIds: unknown; [kind: string]: unknown };
    _meta?: { [key: string]: unknown };
  };
}

export function withTaskListen(handler: McpHttpHandler, deps: ListenDeps): TaskListen {
  const streams = new Set<TaskStream>();
  return {
    async fetch(request, options) {
      const body = options?.parsedBody;
      if (!isTaskListen(body)) return handler.fetch(request, options);
      return listen(handler, deps, streams, body, request, options);
    },
    closeAll() {
      for (const stream of streams) stream.close();
    },
  };
}

function isTaskListen(body: unknown): body is ListenBody {
  const message = body as Partial<ListenBody> | null | undefined;
  const filter = message?.params?.notifications;
  return (
    message?.method === 'subscriptions/listen' &&
    typeof filter === 'object' &&
    filter !== null &&
    filter.taskIds !== undefined
  );
}

async function listen(
  handler: McpHttpHandler,
  deps: ListenDeps,
  streams: Set<TaskStream>,
  body: ListenBody,
  request: Request,
  options: McpHandlerRequestOptions | undefined,
): Promise<Response> {
  const { taskIds, ...others } = body.params.notifications;
  const inner = { ...body, params: { ...body.params, notifications: others } };
  const response = await handler.fetch(request, { ...options, parsedBody: inner });
  if (!response.ok || response.body === null || !isEventStream(response)) return response;
  const refuse = async (
    status: number,
    code: ProtocolErrorCode,
    message: string,
    data?: unknown,
  ): Promise<Response> => {
    await response.body?.cancel();
    return Response.json(rpcError(code, message, { id: body.id, data }), { status });
  };
  const capabilities = capabilitiesIn(body.params._meta);
  if (!declaresTasks(capabilities)) {
    const { code, message, data } = tasksRequired();
    return refuse(400, code, message, data);
  }
  if (!Array.isArray(taskIds) || !taskIds.every((id) => typeof id === 'string')) {
    return refuse(200, ProtocolErrorCode.InvalidParams, 'Invalid params: taskIds must be a list of strings');
  }
  const ids = [...new Set(taskIds)];
  if (ids.length > maxIdsPerStream) {
    return refuse(
      200,
      ProtocolErrorCode.InvalidParams,
      `Invalid params: at most ${maxIdsPerStream} taskIds in one subscription`,
    );
  }
  if (streams.size >= maxStreams)
    return refuse(200, ProtocolErrorCode.InternalError, 'Subscription limit reached');
  const viewer = { canElicit: declaresElicitation(capabilities) };
  const stream = new TaskStream(deps, body.id, ids, viewer, response.body, request, () => {
    streams.delete(stream);
    deps.metrics.streams(-1);
  });
  streams.add(stream);
  deps.metrics.streams(1);
  if (request.signal.aborted) stream.abandon();
  return new Response(stream.readable, { status: 200, headers: response.headers });
}

function isEventStream(response: Response): boolean {
  return response.headers.get('content-type')?.startsWith('text/event-stream') === true;
}
