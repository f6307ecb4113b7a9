// Child processes of a benchmark run: started, asked over IPC, and all gone at the end, whatever happens.

import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';

export interface Child {
  /** Where it listens, or ''. */
  origin: string;
  /** Milliseconds from the start of the process until it was ready. */
  startMs: number;
  /** Asks one question at a time; the answer has the type that messages.ts gives it. */
  ask<Answer>(question: object): Promise<Answer>;
  /** Halts the whole process, and lets it go on. */
  halt(): void;
  resume(): void;
  /** SIGTERM; SIGKILL when that is not enough. */
  stop(): Promise<void>;
}

const startLimitMs = 60_000;
const stopLimitMs = 10_000;
const running = new Set<ChildProcess>();

process.once('exit', killAll);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** For `exit`, where nothing can be waited for. */
function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

export interface StartOptions {
  args?: readonly string[];
  execArgv?: readonly string[];
  env?: { [name: string]: string };
  /** Finds the origin in a line of stderr; without it the child sends `{ready: origin}`. */
  readyLine?: RegExp;
}

/** Starts a file of this folder, or one given by its full path. */
export function startChild(file: string, options: StartOptions = {}): Promise<Child> {
  const { args = [], execArgv = [], env = {}, readyLine } = options;
  const started = performance.now();
  const child = fork(join(import.meta.dirname, file), [...args], {
    execArgv: [...execArgv],
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  });
  running.add(child);
  const exited = new Promise<void>((resolve) =>
    child.once('exit', () => {
      running.delete(child);
      resolve();
    }),
  );
  let errors = '';
  const failed = (): Error => new Error(`${file} ended: ${errors}`);

  const ask = <Answer>(question: object): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const ended = (): void => reject(failed());
      child.once('exit', ended);
      child.once('message', (answer) => {
        child.off('exit', ended);
        // The answering file and the asking one are typed by messages.ts.
        resolve(answer as Answer);
      });
      child.send(question);
    });

  const handle = (origin: string): Child => ({
    origin,
    startMs: performance.now() - started,
    ask,
    halt: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    async stop() {
      child.kill('SIGCONT');
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), stopLimitMs);
      await exited;
      clearTimeout(timer);
    },
  });

  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${file} did not get ready: ${errors}`)), startLimitMs);
    const ready = (origin: string): void => {
      clearTimeout(timer);
      resolve(handle(origin));
    };
    child.stderr?.on('data', (chunk: Buffer) => {
      // Kept for the message of a failure; the first ready line is within the first bytes.
      if (errors.length < 10_000) errors += chunk.toString();
      const found = readyLine?.exec(errors)?.[1];
      if (found !== undefined) ready(found);
    });
    if (readyLine === undefined) {
      child.once('message', (message) => ready((message as { ready: string }).ready));
    }
    child.once('exit', () => {
      clearTimeout(timer);
      reject(failed());
    });
  });
}

/** Stops what is still running. */
export async function stopChildren(): Promise<void> {
  await Promise.all(
    [...running].map(
      (child) =>
        new Promise<void>((resolve) => {
          child.once('exit', () => resolve());
          child.kill('SIGKILL');
        }),
    ),
  );
}
