// One open listen stream: acknowledgement first, then the state of each task, then every change, coalesced for a
// reader that is slower than the changes.

import { SERVER_INFO_META_KEY, SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/server';
import type { Clock } from '../clock.ts';
import type { StoredTask } from '../stores/store.ts';
import type { TaskService } from '../tasks/service.ts';
import { localCaller } from './request.ts';
import { snapshot, type Viewer } from './snapshot.ts';

export interface StreamDeps {
  tasks: TaskService;
  clock: Clock;
  serverInfo: { name: string; version: string };
}

/** Proxies and clients cut streams that are silent for long. */
const keepAliveMs = 15_000;

/** One open listen stream. Ends when the client goes, when the server closes it, or when nothing can follow. */
export class TaskStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #deps: StreamDeps;
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
    deps: StreamDeps,
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
