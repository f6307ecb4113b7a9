// `taskIds` on subscriptions/listen, which the SDK's listen router doesn't know: a wrapper around the SDK's fetch.
//
// The SDK serves the request without `taskIds`, so all of its checks apply; its acknowledgement is completed with
// the ids this caller may follow and goes out first, then the state of each such task, then every change. A frame
// is a full state, so a reader that is slower than the changes only gets the newest one of each task.

import {
  type McpHandlerRequestOptions,
  type McpHttpHandler,
  SERVER_INFO_META_KEY,
  SUBSCRIPTION_ID_META_KEY,
} from '@modelcontextprotocol/server';
import type { Clock } from '../clock.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { StoredTask } from '../stores/store.ts';
import type { TaskService } from '../tasks/service.ts';
import { capabilitiesOf, declaresElicitation, declaresTasks, localCaller, tasksRequired } from './request.ts';
import { snapshot, type Viewer } from './snapshot.ts';

export interface ListenDeps {
  tasks: TaskService;
  clock: Clock;
  metrics: Metrics;
  serverInfo: { name: string; version: string };
}

export interface TaskListen {
  fetch: McpHttpHandler['fetch'];
  /** Ends every stream with its result, as the server is about to stop. */
  closeAll(): void;
}

/** Proxies and clients cut streams that are silent for long. */
const keepAliveMs = 15_000;
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
  const refuse = async (status: number, error: object): Promise<Response> => {
    await response.body?.cancel();
    return Response.json({ jsonrpc: '2.0', id: body.id, error }, { status });
  };
  const capabilities = capabilitiesOf({ mcpReq: { envelope: body.params._meta } } as never);
  if (!declaresTasks(capabilities)) {
    const { code, message, data } = tasksRequired();
    return refuse(400, { code, message, data });
  }
  if (!Array.isArray(taskIds) || !taskIds.every((id) => typeof id === 'string')) {
    return refuse(200, { code: -32602, message: 'Invalid params: taskIds must be a list of strings' });
  }
  const ids = [...new Set(taskIds)];
  if (ids.length > maxIdsPerStream) {
    return refuse(200, {
      code: -32602,
      message: `Invalid params: at most ${maxIdsPerStream} taskIds in one subscription`,
    });
  }
  if (streams.size >= maxStreams) return refuse(200, { code: -32603, message: 'Subscription limit reached' });
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

/** One open listen stream. Ends when the client goes, when the server closes it, or when nothing can follow. */
class TaskStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #deps: ListenDeps;
  readonly #id: string | number;
  readonly #viewer: Omit<Viewer, 'now'>;
  readonly #encoder = new TextEncoder();
  readonly #unsubscribes: (() => void)[] = [];
  /** Newest state of each task that the reader has not taken yet, in order of first change. */
  readonly #pending = new Map<string, StoredTask>();
  readonly #onEnd: () => void;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #inner: ReadableStreamDefaultReader<Uint8Array>;
  /** Held for its signal: a Request that is collected while its client still reads never tells when that goes. */
  readonly #request: Request;
  readonly #onAbort = (): void => this.abandon();
  #stopKeepAlive: () => void = () => {};
  /** Nothing may go out before the acknowledgement. */
  #acknowledged = false;
  #ended = false;

  constructor(
    deps: ListenDeps,
    id: string | number,
    taskIds: readonly string[],
    viewer: Omit<Viewer, 'now'>,
    inner: ReadableStream<Uint8Array>,
    request: Request,
    onEnd: () => void,
  ) {
    this.#deps = deps;
    this.#id = id;
    this.#viewer = viewer;
    this.#onEnd = onEnd;
    this.#inner = inner.getReader();
    this.#request = request;
    request.signal.addEventListener('abort', this.#onAbort, { once: true });
    this.readable = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#flush(),
        cancel: () => this.abandon(),
      },
      { highWaterMark: 16 },
    );
    void this.#run(taskIds).catch(() => this.abandon());
  }

  /** Ends the stream as the specification asks: cancelled, then the empty result, last. */
  close(): void {
    if (this.#ended) return;
    this.#notify('notifications/cancelled', { requestId: this.#id });
    this.#finish();
  }

  /** The reader is gone: nothing more is written. */
  abandon(): void {
    this.#end();
    try {
      this.#controller.close();
    } catch {
      // Already closed or cancelled by the reader.
    }
  }

  async #run(taskIds: readonly string[]): Promise<void> {
    // Subscribed before the states are read, so that no change falls between.
    const found: StoredTask[] = [];
    for (const id of taskIds) {
      const ref = { caller: localCaller, id };
      const unsubscribe = this.#deps.tasks.subscribe(ref, (stored) => this.#changed(stored));
      const stored = await this.#deps.tasks.get(ref);
      if (this.#ended) {
        unsubscribe();
        return;
      }
      if (stored === undefined) unsubscribe();
      else {
        found.push(stored);
        this.#unsubscribes.push(unsubscribe);
      }
    }
    const frames = readFrames(this.#inner);
    const first = await frames.next();
    if (this.#ended || first.done) return this.abandon();
    const ack = first.value as { params: { notifications: { [kind: string]: unknown } } };
    const others = Object.keys(ack.params.notifications).length > 0;
    ack.params.notifications.taskIds = found.map(({ task }) => task.id);
    this.#write(ack);
    this.#acknowledged = true;
    for (const stored of found)
      if (!this.#pending.has(stored.task.id)) this.#pending.set(stored.task.id, stored);
    this.#flush();
    if (found.length === 0 && !others) return this.#finish();
    this.#keepAlive();
    for await (const frame of frames) {
      // The SDK ends its own part when it has nothing to send; this stream goes on for the tasks.
      if (!('result' in frame)) this.#write(frame);
    }
  }

  #changed(stored: StoredTask): void {
    this.#pending.set(stored.task.id, stored);
    if (this.#acknowledged) this.#flush();
  }

  #flush(): void {
    if (!this.#acknowledged) return;
    for (const [id, stored] of this.#pending) {
      if (this.#ended || (this.#controller.desiredSize ?? 0) <= 0) return;
      this.#pending.delete(id);
      const state = snapshot(stored, { ...this.#viewer, now: this.#deps.clock.now() });
      this.#notify('notifications/tasks', state);
    }
  }

  #notify(method: string, params: object): void {
    this.#write({
      jsonrpc: '2.0',
      method,
      params: { ...params, _meta: { [SUBSCRIPTION_ID_META_KEY]: this.#id } },
    });
  }

  #finish(): void {
    this.#write({
      jsonrpc: '2.0',
      id: this.#id,
      result: {
        resultType: 'complete',
        _meta: { [SUBSCRIPTION_ID_META_KEY]: this.#id, [SERVER_INFO_META_KEY]: this.#deps.serverInfo },
      },
    });
    this.abandon();
  }

  #write(message: object): void {
    if (!this.#ended)
      this.#controller.enqueue(this.#encoder.encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`));
  }

  #keepAlive(): void {
    this.#stopKeepAlive = this.#deps.clock.after(keepAliveMs, () => {
      if (this.#ended) return;
      if ((this.#controller.desiredSize ?? 0) > 0)
        this.#controller.enqueue(this.#encoder.encode(': keepalive\n\n'));
      this.#keepAlive();
    });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopKeepAlive();
    this.#request.signal.removeEventListener('abort', this.#onAbort);
    for (const unsubscribe of this.#unsubscribes.splice(0)) unsubscribe();
    this.#pending.clear();
    this.#inner.cancel().catch(() => {});
    this.#onEnd();
  }
}

/** The JSON messages of a server-sent event stream; comments are passed over. */
async function* readFrames(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<object> {
  const decoder = new TextDecoder();
  let held = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += decoder.decode(value, { stream: true });
    let end = held.indexOf('\n\n');
    while (end >= 0) {
      const data = held
        .slice(0, end)
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n');
      held = held.slice(end + 2);
      if (data !== '') yield JSON.parse(data) as object;
      end = held.indexOf('\n\n');
    }
  }
}
