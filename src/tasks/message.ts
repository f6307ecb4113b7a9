// What the client reads as statusMessage: the upstream's own words first, then what taskferry has to add.

import { capText, messageLimit } from '../cap-text.ts';
import type { Task } from './task.ts';

/** Longest part of it that comes from the upstream while taskferry has something to add. */
const partLimit = 300;

/** The message of a task as it is now. */
export function composeMessage(task: Task): string | undefined {
  if (task.stage === 'ended') return task.progress && capText(task.progress, messageLimit);
  const parts: string[] = [];
  if (task.create.doubt !== undefined) {
    parts.push(
      `It is not known yet whether the job was created: ${capText(task.create.doubt.reason, partLimit)}`,
    );
  }
  if (task.stage === 'finishing') {
    parts.push(`The job has ${task.verdict === 'succeeded' ? 'succeeded' : 'failed'}; fetching its result`);
  } else if (task.progress !== undefined) parts.push(task.progress);
  const { kind, since, reason } = task.trouble;
  if (kind === 'unknown_status') parts.push(`Unknown status ${reason}, read as working`);
  else if (kind === 'credential' || kind === 'adapter_missing') parts.push(capText(reason ?? '', partLimit));
  else if (kind !== undefined && since !== undefined) {
    parts.push(
      `${troubleWords[kind]} since ${new Date(since).toISOString()}: ${capText(reason ?? '', partLimit)}`,
    );
  }
  if (task.answers.length > 0) parts.push('Passing the answer on');
  else parts.push(...leftWaiting(task));
  if (task.cancel !== undefined) parts.push(cancelMessage(task.cancel.state));
  if (parts.length === 0) return undefined;
  // The upstream's own words give way to what taskferry has to say.
  const own = parts.slice(1).join('. ');
  const room = own === '' ? messageLimit : Math.max(messageLimit - points(own) - 2, 0);
  return capText([capText(parts[0] ?? '', room), ...parts.slice(1)].join('. '), messageLimit);
}

const troubleWords = {
  unreachable: 'Upstream unreachable',
  missing: 'The upstream does not find the job',
  unreadable: 'The upstream tells no status',
  rejected: 'The upstream refuses to tell the status',
} as const;

function points(text: string): number {
  return [...text].length;
}

/** What is said of a question that nobody is asked any more, although the job still stands at it. */
function leftWaiting(task: Task): string[] {
  const left = Object.values(task.asked).find(({ quiet }) => quiet);
  if (task.cancel !== undefined || left === undefined) return [];
  return left.refusal === undefined
    ? ['Its question was declined or dismissed: the job still waits for an answer']
    : [
        `The upstream refused every answer to its question, the last one with: ${capText(left.refusal, partLimit)}. The job still waits`,
      ];
}

function cancelMessage(state: NonNullable<Task['cancel']>['state']): string {
  if (state === 'unsupported')
    return 'Cancel requested, but this upstream cannot cancel jobs: following it to its end';
  if (state === 'refused')
    return 'Cancel requested, but the upstream refused it: following the job to its end';
  return 'Cancel requested';
}

/** The job's own reference, for messages about a job nobody follows any more. */
export function reference(task: Task, redact: (text: string) => string = (text) => text): string {
  const known = Object.entries(task.job).filter(([, value]) => typeof value !== 'object' || value === null);
  if (known.length === 0) return '';
  const text = redact(known.map(([name, value]) => `${name}: ${String(value)}`).join(', '));
  return ` (${capText(text, partLimit)})`;
}
