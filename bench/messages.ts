// What the runner and its child processes say to each other over the IPC channel.

/** To the probe inside the taskferry process under test. */
export type ProbeQuestion =
  /** Starts counting anew. Watching the loop costs CPU time of its own: 1,000 wakes a second. */
  | { kind: 'begin'; loop: boolean }
  /** What the process used since `begin`. */
  | { kind: 'usage' }
  /** Collects garbage first. */
  | { kind: 'memory' };

export interface Usage {
  /** CPU time of all threads of the process, microseconds. */
  cpuUs: number;
  /** Milliseconds between two turns of a 1 ms timer: an idle process has about 1.1. */
  loopP50: number;
  loopP99: number;
  loopMax: number;
}

export interface Memory {
  rss: number;
  heap: number;
  external: number;
  /** What keeps the process alive, by kind. */
  handles: { [kind: string]: number };
}

export interface RequestTemplate {
  path: string;
  method: 'GET' | 'POST';
  headers: { [name: string]: string };
  body?: string;
}

/** To the load generator. */
export type LoadQuestion =
  | {
      kind: 'run';
      origin: string;
      /** Sent in turn. */
      requests: RequestTemplate[];
      /** Each waits for its reply before it asks again. */
      clients: number;
      /** The run ends after this time or this many requests, whichever comes first. */
      ms: number;
      count?: number;
      /** Every reply must hold this text. */
      expect: string;
      /** Also give the replies back. */
      keep?: boolean;
    }
  /** Opens streams and keeps them; answers when each has received `expect`. */
  | { kind: 'open'; origin: string; requests: RequestTemplate[]; expect: string }
  | { kind: 'close' };

export interface LoadAnswer {
  count: number;
  perSecond: number;
  p50: number;
  p99: number;
  cpuUs: number;
  replies: string[];
}

/** To the job service. */
export type UpstreamQuestion =
  /** `moving`: every look at a job finds one more step done. */
  | { kind: 'mode'; moving: boolean }
  /** The reply of `POST /fixed`. */
  | { kind: 'fixed'; body: string }
  | { kind: 'looks' };

export interface Looks {
  looks: number;
  /** Monotonic milliseconds of the service. */
  at: number;
}

/** To the process that measures stores. */
export interface StoreQuestion {
  subject: 'taskferry' | 'bare';
  folder: string;
  clients: number;
  count: number;
}

export interface StoreAnswer {
  perSecond: number;
  p50: number;
  p99: number;
  loopP99: number;
}
