// The neutral end of a task: what happened, in no protocol's words. mcp/render.ts turns it into wire text.

import type { JobResult } from '../drivers/driver.ts';
import type { Ending, Task } from './task.ts';

export type Outcome =
  /** The job ended by itself, well or badly. */
  | { kind: 'result'; ending: 'succeeded' | 'failed'; result: JobResult }
  /** The upstream says that the job was cancelled. */
  | { kind: 'cancelled'; ending: 'cancelled'; message: string | undefined }
  /** The call could not be carried out, or nobody knows how it went. */
  | { kind: 'error'; ending: Exclude<Ending, 'succeeded' | 'failed' | 'cancelled'>; message: string };

/** Renders the outcome of a task once, when it ends; the text is stored and served as it is. */
export type RenderOutcome = (task: Task, outcome: Outcome) => string;
