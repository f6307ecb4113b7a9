// One tick of a task's life: whatever is due for it now, upstream and in the store. The scheduler calls it with
// the task's lease held; the last thing a tick does is give the lease back with the time of the next look.

import type { AnswerOutcome, Poll, ResultOutcome, Upstream } from '../drivers/driver.ts';
import type { StoredTask } from '../stores/store.ts';
import { about, apply, type TaskDeps } from './apply.ts';
import { advanceCreate } from './create.ts';
import { cancelDue } from './moves/cancel.ts';
import { verdictOf } from './moves/end.ts';
import type { Observation } from './observation.ts';
import type { PendingAnswer, Task, TaskRef } from './task.ts';
import { planWithoutAdapter, viewOf } from './view.ts';
import { within } from './within.ts';

/** Does what is due for a leased task. */
export async function follow(deps: TaskDeps, ref: TaskRef): Promise<void> {
  const stored = await deps.store.get(ref);
  if (stored?.schedule === undefined) return;
  const { task } = stored;
  const found = await deps.upstreams.of(task);
  if (task.stage === 'ended') return cleanUpAfter(deps, stored, found);
  const overdue = deps.clock.now() >= task.deadline;
  if ('missing' in found) {
    await apply(
      deps,
      ref,
      planWithoutAdapter(task),
      [overdue ? { kind: 'deadline' } : { kind: 'adapter_missing', reason: found.missing }],
      {
        lease: 'release',
      },
    );
    return;
  }
  const { upstream } = found;
  const done = (observations: Observation[]): Promise<unknown> =>
    apply(deps, ref, upstream.plan, observations, { lease: 'release', known: stored });

  if (task.stage === 'finishing') return void (await done([await finish(deps, upstream, task, overdue)]));
  if (overdue) return void (await done(await expire(deps, upstream, task)));
  if (task.stage === 'creating') {
    const advanced = await advanceCreate(deps, upstream, task, { recovering: true, lease: 'release' });
    // The caller has the task already, so its record stays.
    if ('refused' in advanced) await done([{ kind: 'create_refused', reason: advanced.refused }]);
    return;
  }
  await done(await followJob(deps, upstream, task));
}

/**
 * Polls, then sends what is waiting to be sent: which request cancels a job often depends on where it stands. A
 * job that turns out to have ended is sent nothing.
 */
async function followJob(deps: TaskDeps, upstream: Upstream, task: Task): Promise<Observation[]> {
  // The upstream's budget may be paused for longer than the task has left.
  const poll = await within(deps.clock, task.deadline - deps.clock.now(), upstream.poll(viewOf(task)));
  if (poll === undefined) return [{ kind: 'deadline' }];
  const seen = [poll.observation, ...(await resultInTime(deps, upstream, task, poll))];
  const sends = task.answers.length > 0 || cancelDue(task, upstream.plan, deps.clock.now()) !== undefined;
  if (!sends || verdictOf(poll.observation) !== undefined || mustWait(deps, task, poll)) return seen;
  const after = await apply(deps, task, upstream.plan, seen, { lease: 'hold' });
  if (after === undefined || after.task.stage !== 'following') return [];
  return send(deps, upstream, after.task, poll);
}

/** Sends a stored cancel, else stored answers, one by one; each outcome is stored before the next is sent. */
async function send(deps: TaskDeps, upstream: Upstream, task: Task, poll: Poll): Promise<Observation[]> {
  const afterMs = cancelDue(task, upstream.plan, deps.clock.now());
  if (afterMs !== undefined)
    return [{ kind: 'cancel_outcome', outcome: await upstream.cancel(viewOf(task), poll, afterMs), afterMs }];
  const sent: Observation[] = [];
  for (const answer of task.answers) {
    if (sent.length > 0) await apply(deps, task, upstream.plan, sent.splice(0), { lease: 'hold' });
    const outcome: AnswerOutcome = hasChanged(answer, poll)
      ? { kind: 'refused', reason: 'the question has changed since it was answered' }
      : await upstream.answer(viewOf(task), answer, poll);
    sent.push({ kind: 'answer_outcome', key: answer.key, outcome });
  }
  return sent;
}

/** The job asks about something else by now: a yes to the one must not be taken for a yes to the other. */
function hasChanged({ stem, fingerprint }: PendingAnswer, { observation }: Poll): boolean {
  if (observation.kind !== 'status') return false;
  return observation.questions.some((now) => now.stem === stem && now.fingerprint !== fingerprint);
}

/** How long a cancel waits for a status that can't be read: which request cancels may depend on where the job stands. */
const blindCancelMs = 10_000;

/**
 * Little can be sent where nothing can be read: the trouble is stored and the sending tried again later. Only a
 * cancel does not wait for long, as the way to it may be open.
 */
function mustWait(deps: TaskDeps, task: Task, { observation }: Poll): boolean {
  if (observation.kind !== 'unreachable' && observation.kind !== 'credential') return false;
  const { cancel } = task;
  return cancel?.state !== 'requested' || deps.clock.now() - cancel.requestedAt < blindCancelMs;
}

/**
 * One poll and, when the job has ended, its result: both are one change, so that no reader sees an ended job
 * without its result.
 */
export async function pollOnce(upstream: Upstream, task: Task): Promise<Observation[]> {
  const poll = await upstream.poll(viewOf(task));
  return [poll.observation, ...(await resultOf(upstream, task, poll))];
}

async function resultOf(upstream: Upstream, task: Task, poll: Poll): Promise<Observation[]> {
  const verdict = verdictOf(poll.observation);
  if (poll.observation.kind !== 'status' || (verdict !== 'succeeded' && verdict !== 'failed')) return [];
  const { job, statusStage } = poll.observation;
  const view = { ...viewOf(task), job: { ...task.job, ...job }, statusStage };
  const outcome = await upstream.result(view, verdict, poll);
  return [resultSeen(outcome)];
}

function resultSeen(outcome: ResultOutcome): Observation {
  return outcome.kind === 'ready'
    ? { kind: 'result', result: outcome.result }
    : { ...outcome, kind: 'result_later' };
}

/** The job has ended and its result could not be fetched at once: another try. */
async function finish(
  deps: TaskDeps,
  upstream: Upstream,
  task: Task,
  overdue: boolean,
): Promise<Observation> {
  const verdict = task.verdict === 'succeeded' ? 'succeeded' : 'failed';
  const left = overdue ? lastLookMs : Math.max(task.deadline - deps.clock.now(), lastLookMs);
  const outcome = await within(deps.clock, left, upstream.result(viewOf(task), verdict));
  return outcome === undefined ? { kind: 'deadline' } : resultSeen(outcome);
}

/** The result of a job that was just seen to have ended; later, when it is not there by the deadline. */
async function resultInTime(
  deps: TaskDeps,
  upstream: Upstream,
  task: Task,
  poll: Poll,
): Promise<Observation[]> {
  if (verdictOf(poll.observation) === undefined) return [];
  const left = Math.max(task.deadline - deps.clock.now(), lastLookMs);
  return (await within(deps.clock, left, resultOf(upstream, task, poll))) ?? [];
}

/** The longest a task outlives its deadline so that the upstream can be told to stop the job. */
const lastCancelMs = 30_000;
/** … or can be asked whether the job has ended by now. */
const lastLookMs = 5_000;

async function expire(deps: TaskDeps, upstream: Upstream, task: Task): Promise<Observation[]> {
  const deadline: Observation = { kind: 'deadline' };
  const { onTimeout } = upstream.plan.timing;
  if (task.stage !== 'following') return [deadline];
  if (onTimeout === 'leave' || !upstream.plan.canCancel) {
    // Whoever waited for a free place, or for taskferry to be started again, may have missed the end.
    const last = await within(deps.clock, lastLookMs, pollOnce(upstream, task));
    const [status] = last ?? [];
    return status?.kind === 'status' && verdictOf(status) !== undefined ? (last ?? []) : [deadline];
  }
  // Best effort: the task ends whatever the upstream answers, and whether or not it does.
  const seen = (await within(deps.clock, lastCancelMs, cancelAtLast(upstream, task))) ?? [];
  return seen.length > 0 ? seen : [deadline];
}

/** The longest that one try to remove what a job has left may take. */
const cleanupMs = 30_000;

/** Removes what an ended job has left upstream. What can't be removed in a few tries is left there, and logged. */
async function cleanUpAfter(
  deps: TaskDeps,
  stored: StoredTask,
  found: Awaited<ReturnType<TaskDeps['upstreams']['of']>>,
): Promise<void> {
  const { task } = stored;
  const outcome =
    'missing' in found
      ? { kind: 'later' as const, reason: found.missing, retryAfterMs: undefined }
      : ((await within(deps.clock, cleanupMs, found.upstream.cleanUp(viewOf(task), task.phase))) ?? {
          kind: 'later' as const,
          reason: 'the upstream does not answer',
          retryAfterMs: undefined,
        });
  const plan = 'missing' in found ? planWithoutAdapter(task) : found.upstream.plan;
  const seen: Observation =
    outcome.kind === 'done' ? { kind: 'cleaned' } : { ...outcome, kind: 'cleanup_later' };
  const after = await apply(deps, task, plan, [seen], { lease: 'release', known: stored });
  if (outcome.kind === 'later' && after?.task.cleanup === undefined) {
    const fields = { ...about(task), reason: outcome.reason };
    deps.log.warn(fields, 'what the job has left upstream could not be removed');
  }
}

/** Ends a leased task past its deadline. Its upstream is only asked to cancel, and not for long. */
export async function expireLate(deps: TaskDeps, ref: TaskRef): Promise<void> {
  const stored = await deps.store.get(ref);
  if (stored?.schedule === undefined) return;
  const { task } = stored;
  const found = await deps.upstreams.of(task);
  if (task.stage === 'ended') return cleanUpAfter(deps, stored, found);
  const upstream = 'missing' in found ? undefined : found.upstream;
  const cancels = upstream?.plan.timing.onTimeout === 'cancel';
  const seen: Observation[] = cancels ? await expire(deps, upstream, task) : [{ kind: 'deadline' }];
  const plan = upstream?.plan ?? planWithoutAdapter(task);
  await apply(deps, ref, plan, seen, { lease: 'release', known: stored });
}

/** @returns how the job ended, when it turns out that it has: then there is nothing to cancel. */
async function cancelAtLast(upstream: Upstream, task: Task): Promise<Observation[]> {
  const poll = await upstream.poll(viewOf(task));
  if (verdictOf(poll.observation) !== undefined) {
    return [poll.observation, ...(await resultOf(upstream, task, poll))];
  }
  await upstream.cancel(viewOf(task), poll, 0);
  return [];
}
