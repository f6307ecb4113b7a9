// Errors that reach a person: a stable code, a plain sentence that says what and where, and the fix.

/** Codes are stable: scripts and dashboards may match on them. */
export type ErrorCode =
  | 'config_invalid'
  | 'port_in_use'
  | 'listen_failed'
  | 'listen_refused'
  | 'store_full'
  | 'store_locked'
  | 'store_corrupt'
  | 'store_newer'
  | 'store_unreadable'
  | 'store_closed'
  | 'store_failed'
  | 'secret_missing'
  | 'secret_unreadable';

export class TaskferryError extends Error {
  override readonly name: string = 'TaskferryError';
  readonly code: ErrorCode;
  /** What to do about it, as one sentence. */
  readonly fix: string | undefined;

  constructor(code: ErrorCode, message: string, options: { fix?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.fix = options.fix;
  }
}

/** What happened and what to do about it, `message (fix)`; of anything else that is thrown its message. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof TaskferryError && error.fix !== undefined
    ? `${error.message} (${error.fix})`
    : error.message;
}

/** One fault in a configuration file. */
export interface Problem {
  file: string;
  /** 1-based; 0 when the fault has no position (the file can't be read). */
  line: number;
  column: number;
  /** Dotted path of the field, '' for the whole file. */
  path: string;
  message: string;
  hint?: string;
}

/** `file:line:column path message (hint)`, the form editors and terminals link. */
export function formatProblem(problem: Problem): string {
  const at = problem.line > 0 ? `${problem.file}:${problem.line}:${problem.column}` : problem.file;
  const path = problem.path === '' ? '' : ` ${problem.path}:`;
  return `${at}${path} ${problem.message}${problem.hint ? ` (${problem.hint})` : ''}`;
}

/** The same for a fault that stops nothing. */
export function formatWarning(problem: Problem): string {
  return formatProblem({ ...problem, message: `warning: ${problem.message}` });
}

/** Sorts problems of one file in its order. */
export function byPlace(a: Problem, b: Problem): number {
  return a.line - b.line || a.column - b.column;
}

/** A store that can't do what was asked. `store_full` heals by itself once there is space. */
export class StoreError extends TaskferryError {
  override readonly name = 'StoreError';
}
