import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeTask, encodeTask } from '../../src/stores/task-row.ts';
import type { Observation } from '../../src/tasks/observation.ts';
import { reduce } from '../../src/tasks/reduce.ts';
import type { Task } from '../../src/tasks/task.ts';
import { sampleContext, samplePlan, sampleTask, startTime } from '../helpers/sample-task.ts';

type Action = { advanceMs: number } & (
  | { kind: 'observe'; observation: Observation }
  /** An answer to an open question, or to a key that was never issued. */
  | { kind: 'answer'; open: boolean; action: 'accept' | 'decline' }
  | { kind: 'deliver'; outcome: 'delivered' | 'refused' | 'unhandled' | 'later' }
  /** The process dies: only what the store holds survives. */
  | { kind: 'crash' }
);

const reason = fc.constantFrom('HTTP 502', 'HTTP 404', 'timed out');
const phase = fc.constantFrom('working', 'input_required', 'succeeded', 'failed', 'cancelled', 'errored');
const status = fc
  .record({
    phase,
    stem: fc.constantFrom('approve', 'reason'),
    fingerprint: fc.constantFrom('f1', 'f2'),
    message: fc.option(fc.constantFrom('1/2', '2/2'), { nil: undefined }),
  })
  .map(
    ({ phase, stem, fingerprint, message }): Observation => ({
      kind: 'status',
      phase: phase as 'working',
      job: {},
      statusStage: 0,
      questions:
        phase === 'input_required'
          ? [
              {
                stem,
                ask: stem,
                item: undefined,
                fingerprint,
                message: `${stem}?`,
                schema: { type: 'object' },
              },
            ]
          : [],
      ...(message !== undefined && { message }),
    }),
  );
const observation: fc.Arbitrary<Observation> = fc.oneof(
  { weight: 6, arbitrary: status },
  fc.record({
    kind: fc.constantFrom(
      'unreachable',
      'credential',
      'missing',
      'gone',
      'unreadable',
      'rejected',
      'adapter_missing',
    ),
    reason,
  }) as fc.Arbitrary<Observation>,
  fc.constant<Observation>({ kind: 'created', job: { id: 9007199254740993n } }),
  reason.map(
    (reason): Observation => ({ kind: 'create_doubt', reason, looked: true, retryAfterMs: undefined }),
  ),
  fc.constant<Observation>({ kind: 'cancel_requested' }),
  fc.constantFrom<Observation>(
    { kind: 'cancel_outcome', afterMs: 0, outcome: { kind: 'sent' } },
    { kind: 'cancel_outcome', afterMs: 0, outcome: { kind: 'refused', reason: 'HTTP 409' } },
    {
      kind: 'cancel_outcome',
      afterMs: 0,
      outcome: { kind: 'later', reason: 'HTTP 503', retryAfterMs: undefined },
    },
  ),
  fc.constantFrom<Observation>(
    { kind: 'result', result: { isError: false, text: 'x', structured: undefined, links: [] } },
    {
      kind: 'result_later',
      reason: 'HTTP 503',
      retryAfterMs: undefined,
      fallback: { isError: false, text: 'no result', structured: undefined, links: [] },
    },
  ),
);
const advanceMs = fc.constantFrom(0, 1, 5_000, 61_000);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('observe' as const), observation, advanceMs }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      open: fc.boolean(),
      action: fc.constantFrom('accept' as const, 'decline' as const),
      advanceMs,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('deliver' as const),
      outcome: fc.constantFrom(
        'delivered' as const,
        'refused' as const,
        'unhandled' as const,
        'later' as const,
      ),
      advanceMs,
    }),
  },
  fc.record({ kind: fc.constant('crash' as const), advanceMs }),
);

function observationOf(task: Task, action: Exclude<Action, { kind: 'crash' }>): Observation | undefined {
  switch (action.kind) {
    case 'observe':
      return action.observation;
    case 'answer': {
      const key = action.open ? task.questions[0]?.key : 'never-issued';
      return key === undefined
        ? undefined
        : { kind: 'answers', answers: [{ key, action: action.action, content: {} }] };
    }
    case 'deliver': {
      const key = task.answers[0]?.key;
      if (key === undefined) return undefined;
      const { outcome } = action;
      if (outcome === 'later')
        return {
          kind: 'answer_outcome',
          key,
          outcome: { kind: 'later', reason: 'x', retryAfterMs: undefined },
        };
      return {
        kind: 'answer_outcome',
        key,
        outcome: outcome === 'refused' ? { kind: 'refused', reason: 'no' } : { kind: outcome },
      };
    }
  }
}

it('keeps its promises over random observations, answers, cancels and crashes', () => {
  const plan = samplePlan();
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      let task = sampleTask();
      let now = startTime;
      /** Every question ever shown, by key: a key stands for one question for good. */
      const issued = new Map<string, string>();
      let ended: Task | undefined;
      for (const action of actions) {
        now += action.advanceMs;
        if (action.kind === 'crash') {
          task = decodeTask(encodeTask(task));
          continue;
        }
        const observed = observationOf(task, action);
        if (observed === undefined) continue;
        const before = task;
        const step = reduce(before, [observed], sampleContext(now, plan));
        task = step.task;

        // One change is one version; no change is no write.
        expect(task.version).toBe(task === before ? before.version : before.version + 1);
        // First terminal wins, to the last field.
        if (ended !== undefined) expect(task).toBe(before);
        // An ended task has left the schedule, any other is looked at between now and its deadline.
        if (task.stage === 'ended') expect(step.schedule).toBeNull();
        else {
          expect(step.schedule?.dueAt).toBeGreaterThanOrEqual(now);
          expect(step.schedule?.dueAt).toBeLessThanOrEqual(Math.max(now, task.deadline));
        }
        // Exactly the change that ends a task carries its outcome.
        expect(step.outcome !== undefined).toBe(before.stage !== 'ended' && task.stage === 'ended');
        // Stages only move forward.
        const order = ['creating', 'following', 'finishing', 'ended'];
        expect(order.indexOf(task.stage)).toBeGreaterThanOrEqual(order.indexOf(before.stage));
        // The verdict, once fixed, is the end.
        if (before.verdict !== undefined) expect(task.verdict).toBe(before.verdict);
        // Time of change never goes back, and moves only with what a client sees.
        expect(task.updatedAt).toBeGreaterThanOrEqual(before.updatedAt);
        if (!step.visible) expect(task.updatedAt).toBe(before.updatedAt);
        // A wish to cancel is never forgotten, and withdraws all questions.
        if (before.cancel !== undefined) expect(task.cancel?.requestedAt).toBe(before.cancel.requestedAt);
        if (task.cancel !== undefined) expect(task.questions).toEqual([]);
        // input_required exactly when there is something to answer.
        expect(task.phase === 'input_required').toBe(task.questions.length > 0);
        // An accepted answer leaves only by an outcome, a cancel, a verdict or the end.
        for (const answer of before.answers) {
          const kept = task.answers.some(({ key }) => key === answer.key);
          const mayLeave =
            observed.kind === 'answer_outcome' || task.cancel !== undefined || task.stage !== 'following';
          expect(kept || mayLeave).toBe(true);
        }
        for (const { key, stem, fingerprint, message } of task.questions) {
          const identity = `${stem} ${fingerprint} ${message}`;
          expect(issued.get(key) ?? identity).toBe(identity);
          issued.set(key, identity);
        }
        const open = new Set(task.questions.map(({ key }) => key));
        for (const { key } of before.questions) if (!open.has(key)) issued.set(key, 'closed');
        if (task.stage === 'ended') ended ??= task;
      }
    }),
    { numRuns: 2_000 },
  );
});
