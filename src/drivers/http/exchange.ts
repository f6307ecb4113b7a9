// One request on the wire and the raw bytes that come back, within byte and time limits.

import type { Dispatcher } from 'undici';
import type { Cancel, Clock } from '../../clock.ts';
import type { Collector } from './collect.ts';
import type { HttpTimeouts } from './compiled.ts';

export interface WireRequest {
  origin: string;
  /** Path and query; the absolute URL for a forwarding proxy. */
  path: string;
  method: string;
  headers: { [name: string]: string };
  body: Buffer | undefined;
}

export interface ExchangeLimits {
  timeouts: HttpTimeouts;
  /** The body is not wanted: what is too large is cut off, a broken rest is no failure. */
  discard: boolean;
  /** Takes the body of a reply. */
  collector(status: number, headers: RawHeaders): Collector;
}

export type RawHeaders = { [name: string]: string | string[] | undefined };

export type Exchange =
  /** `broken`: the body did not arrive whole; `body` then holds nothing of use. */
  | { kind: 'reply'; status: number; headers: RawHeaders; body: Collector; broken: Error | undefined }
  /** `started`: bytes of the request may have gone out. */
  | { kind: 'failed'; error: Error; started: boolean };

/** What of our own ended the exchange. */
export type LimitCode = 'too_large' | 'headers_time' | 'body_time' | 'total_time' | 'aborted';

export class ExchangeLimit extends Error {
  override readonly name = 'ExchangeLimit';
  readonly code: LimitCode;

  constructor(code: LimitCode) {
    super(code);
    this.code = code;
  }
}

/** A whole body may take this many times the longest silence allowed in it. */
const bodyTimes = 4;

/**
 * Never rejects. Redirects are replies like any other. All times are kept here: undici's own timers are up to a
 * second late.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: WireRequest,
  limits: ExchangeLimits,
  clock: Clock,
  signal: AbortSignal,
): Promise<Exchange> {
  const { timeouts, discard } = limits;
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined;
    let head: { status: number; headers: RawHeaders; body: Collector } | undefined;
    let lastByteAt = 0;
    let settled = false;
    const timers = new Map<LimitCode, Cancel>();

    const stop = (): void => {
      settled = true;
      for (const cancel of timers.values()) cancel();
      signal.removeEventListener('abort', onAbort);
    };
    const settle = (outcome: Exchange): void => {
      if (settled) return;
      stop();
      resolve(outcome);
    };
    const fail = (error: Error): void => {
      // What has settled is read by now.
      if (settled) return;
      if (head === undefined) {
        settle({ kind: 'failed', error, started: controller !== undefined });
        return;
      }
      const aborted = error instanceof ExchangeLimit && error.code === 'aborted';
      const broken = discard && !aborted ? undefined : error;
      if (broken !== undefined) head.body.drop();
      settle({ kind: 'reply', ...head, broken });
    };
    /** Ends the exchange from our side; the socket is destroyed. */
    const end = (code: LimitCode): void => {
      if (settled) return;
      const error = new ExchangeLimit(code);
      fail(error);
      controller?.abort(error);
    };
    const onAbort = (): void => end('aborted');
    /** What was wanted is there; the rest is not waited for. */
    const enough = (): void => {
      if (head === undefined) return;
      settle({ kind: 'reply', ...head, broken: undefined });
      controller?.abort(new ExchangeLimit('aborted'));
    };
    /** Runs `check` after what has already arrived was read: a stalled process must not take it for silence. */
    const afterReading = (code: LimitCode, ms: number, check: () => void): void => {
      timers.set(
        code,
        clock.after(ms, () => setImmediate(check)),
      );
    };
    /** One timer for all the silences of a body: it looks how old the last byte is. */
    const watchSilence = (ms: number): void => {
      afterReading('body_time', ms, () => {
        const left = lastByteAt + timeouts.body - clock.monotonic();
        if (settled) return;
        if (left >= 1) watchSilence(left);
        else end('body_time');
      });
    };

    if (signal.aborted) {
      onAbort();
      return;
    }
    signal.addEventListener('abort', onAbort, { once: true });

    dispatcher.dispatch(
      {
        origin: request.origin,
        path: request.path,
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      {
        onRequestStart(started) {
          // Given up while the connection was being made: nothing may go out any more.
          if (settled) {
            started.abort(new ExchangeLimit('aborted'));
            return;
          }
          controller = started;
          afterReading('headers_time', timeouts.headers, () => {
            if (head === undefined) end('headers_time');
          });
        },
        onResponseStart(_controller, status, headers) {
          if (status < 200 || settled) return;
          head = { status, headers, body: limits.collector(status, headers) };
          timers.get('headers_time')?.();
          lastByteAt = clock.monotonic();
          watchSilence(timeouts.body);
          afterReading('total_time', (discard ? 1 : bodyTimes) * timeouts.body, () => end('total_time'));
        },
        onResponseData(receiving, chunk) {
          if (settled || head === undefined) return;
          lastByteAt = clock.monotonic();
          const next = head.body.take(chunk, () => {
            lastByteAt = clock.monotonic();
            receiving.resume();
          });
          if (next === 'too_large') end('too_large');
          else if (next === 'enough') enough();
          else if (next === 'pause') receiving.pause();
        },
        onResponseEnd() {
          if (head === undefined || settled) return;
          stop();
          const outcome: Exchange = { kind: 'reply', ...head, broken: undefined };
          // undici frees the socket in the next turn; whoever asks before that gets a new one.
          queueMicrotask(() => setImmediate(resolve, outcome));
        },
        onResponseError(_controller, error) {
          fail(error);
        },
      },
    );
  });
}
