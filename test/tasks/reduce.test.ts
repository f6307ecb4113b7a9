import { describe, expect, it } from 'vitest';
import type { PollObservation, Question } from '../../src/drivers/driver.ts';
import type { Observation } from '../../src/tasks/observation.ts';
import { reduce } from '../../src/tasks/reduce.ts';
import type { Task } from '../../src/tasks/task.ts';
import { followingTask, sampleContext, samplePlan, sampleTask, startTime } from '../helpers/sample-task.ts';

const minute = 60_000;

function status(fields: Partial<Extract<PollObservation, { kind: 'status' }>> = {}): Observation {
  return { kind: 'status', phase: 'working', job: {}, statusStage: 0, questions: [], ...fields };
}

function question(fields: Partial<Question> = {}): Question {
  return {
    stem: 'approve',
    ask: 'approve',
    item: undefined,
    message: 'Approve?',
    schema: { type: 'object' },
    fingerprint: 'f1',
    ...fields,
  };
}

/** Applies observations one after another, `every` milliseconds apart. */
function play(task: Task, observations: Observation[], { every = 5_000, plan = samplePlan() } = {}): Task {
  let current = task;
  let now = startTime;
  for (const observation of observations) {
    now += every;
    current = reduce(current, [observation], sampleContext(now, plan)).task;
  }
  return current;
}

describe('create', () => {
  it('follows the job once the last create step has given its captures', () => {
    const { task, schedule, durable } = reduce(
      sampleTask(),
      [{ kind: 'created', job: { id: 7n } }],
      sampleContext(startTime),
    );
    expect(task).toMatchObject({ stage: 'following', job: { id: 7n }, version: 2 });
    expect(schedule?.dueAt).toBe(startTime + 5_000);
    expect(durable).toBe(true);
  });

  it('stays in creating, with the captures kept, while create steps are left', () => {
    const step = { recovery: { repeat: false, repeatForMs: undefined, find: undefined } };
    const plan = samplePlan({ createSteps: [step, step] });
    const { task } = reduce(
      sampleTask(),
      [{ kind: 'created', job: { file: 'f' } }],
      sampleContext(startTime, plan),
    );
    expect(task).toMatchObject({ stage: 'creating', job: { file: 'f' }, create: { step: 1 } });
  });

  it('says in the message that it is not known whether the job exists', () => {
    const { task } = reduce(
      sampleTask(),
      [{ kind: 'create_doubt', reason: 'timed out', looked: false, retryAfterMs: undefined }],
      sampleContext(startTime),
    );
    expect(task.message).toBe('It is not known yet whether the job was created: timed out');
  });

  it('ends as outcome_unknown when the doubt cannot be resolved', () => {
    const { task, outcome } = reduce(
      sampleTask(),
      [{ kind: 'create_unknown', reason: 'HTTP 502' }],
      sampleContext(startTime),
    );
    expect(task).toMatchObject({ stage: 'ended', phase: 'errored', ending: 'outcome_unknown' });
    expect(outcome).toMatchObject({
      kind: 'error',
      message: expect.stringContaining('a job may exist upstream'),
    });
  });

  it('sends a cancel that came while the job was being created as soon as it is linked', () => {
    const cancelled = reduce(sampleTask(), [{ kind: 'cancel_requested' }], sampleContext(startTime)).task;
    const { task, schedule } = reduce(
      cancelled,
      [{ kind: 'created', job: {} }],
      sampleContext(startTime + 100),
    );
    expect(task).toMatchObject({ stage: 'following', cancel: { state: 'requested' } });
    expect(schedule?.dueAt).toBe(startTime + 100);
  });
});

describe('polls', () => {
  it('keeps a task working through any number of bad polls until its deadline', () => {
    const bad: Observation[] = ['unreachable', 'credential', 'rejected'].map(
      (kind) => ({ kind, reason: 'HTTP 502' }) as Observation,
    );
    const task = play(followingTask(), Array.from({ length: 300 }, () => bad).flat(), { every: 1_000 });
    expect(task.stage).toBe('following');
    const { task: ended } = reduce(task, [{ kind: 'deadline' }], sampleContext(task.deadline));
    expect(ended).toMatchObject({ stage: 'ended', ending: 'timed_out' });
    expect(ended.message).toContain('the job may still run (id: 7)');
  });

  it('says since when the upstream is unreachable and forgets it after a good poll', () => {
    const down = play(followingTask(), [
      { kind: 'unreachable', reason: 'HTTP 502' },
      { kind: 'unreachable', reason: 'HTTP 503' },
    ]);
    expect(down.message).toBe(
      `Upstream unreachable since ${new Date(startTime + 5_000).toISOString()}: HTTP 503`,
    );
    expect(play(down, [status({ message: '1/2 steps' })]).message).toBe('1/2 steps');
  });

  it('tolerates a 404 for 60 seconds after the link, then needs three in a row', () => {
    const missing: Observation = { kind: 'missing', reason: 'HTTP 404' };
    const young = play(
      followingTask(),
      Array.from({ length: 11 }, () => missing),
    );
    expect(young.stage).toBe('following');
    let task = young;
    for (const [index, stage] of ['following', 'following', 'ended'].entries()) {
      task = reduce(task, [missing], sampleContext(startTime + 2 * minute + index)).task;
      expect(task.stage).toBe(stage);
    }
    expect(task.ending).toBe('job_lost');
  });

  it('counts 404s anew after a good poll', () => {
    const old = followingTask({ linkedAt: startTime - 10 * minute });
    const missing: Observation = { kind: 'missing', reason: 'HTTP 404' };
    expect(play(old, [missing, missing, status(), missing, missing]).stage).toBe('following');
  });

  it('ends at once on 410', () => {
    expect(play(followingTask(), [{ kind: 'gone', reason: 'HTTP 410' }])).toMatchObject({
      ending: 'job_lost',
    });
  });

  it('ends as status_unreadable after ten replies in a row without a status', () => {
    const unreadable: Observation = { kind: 'unreadable', reason: '`of` gives nothing' };
    const nine = play(
      followingTask(),
      Array.from({ length: 9 }, () => unreadable),
    );
    expect(nine.stage).toBe('following');
    expect(play(nine, [unreadable])).toMatchObject({ stage: 'ended', ending: 'status_unreadable' });
  });

  it('reads a status word it does not know as working and shows it', () => {
    const task = play(followingTask(), [status({ unknownWord: '"hibernating"' })]);
    expect(task).toMatchObject({ stage: 'following', phase: 'working' });
    expect(task.message).toBe('Unknown status "hibernating", read as working');
  });

  it('grows the interval by half while nothing changes and starts again on news', () => {
    const plan = samplePlan();
    let interval = plan.timing.every;
    const next = (observation: Observation, task: Task): number => {
      const { schedule } = reduce(task, [observation], {
        ...sampleContext(startTime, plan),
        intervalMs: interval,
      });
      interval = schedule?.intervalMs ?? 0;
      return interval;
    };
    const task = followingTask();
    expect(next(status(), task)).toBe(7_500);
    expect(next(status(), task)).toBe(11_250);
    for (let i = 0; i < 10; i++) next(status(), task);
    expect(interval).toBe(60_000);
    expect(next(status({ message: 'new' }), task)).toBe(5_000);
  });

  it('never looks again before the upstream asked to, nor after the deadline', () => {
    const wait = reduce(followingTask(), [status({ retryAfterMs: 30_000 })], sampleContext(startTime));
    expect(wait.schedule?.dueAt).toBe(startTime + 30_000);
    const huge = reduce(
      followingTask(),
      [{ kind: 'unreachable', reason: 'x', retryAfterMs: 9e9 }],
      sampleContext(startTime),
    );
    expect(huge.schedule?.dueAt).toBe(startTime + 3_600_000);
  });

  it('moves lastUpdated only when a client can see a difference', () => {
    const seen = play(followingTask(), [status({ message: 'a' })]);
    const again = reduce(
      seen,
      [status({ message: 'a', job: { stage: 2n } })],
      sampleContext(startTime + minute),
    );
    expect(again.task.job).toEqual({ id: 7n, stage: 2n });
    expect(again.task.updatedAt).toBe(seen.updatedAt);
    expect(again.visible).toBe(false);
  });

  it('leaves the record as it is when a poll brings nothing new', () => {
    const task = play(followingTask(), [status({ message: 'a' })]);
    expect(reduce(task, [status({ message: 'a' })], sampleContext(startTime + minute)).task).toBe(task);
  });
});

describe('the end', () => {
  const result = { isError: false, text: 'done', structured: undefined, links: [] };
  const resultLater: Observation = {
    kind: 'result_later',
    reason: 'HTTP 503',
    retryAfterMs: undefined,
    fallback: { ...result, text: 'done, but not to be read' },
  };

  it('ends with the result in one change', () => {
    const { task, outcome, schedule } = reduce(
      followingTask(),
      [status({ phase: 'succeeded' }), { kind: 'result', result }],
      sampleContext(startTime),
    );
    expect(task).toMatchObject({ stage: 'ended', phase: 'succeeded', version: 2 });
    expect(outcome).toMatchObject({ kind: 'result', ending: 'succeeded' });
    expect(schedule).toBeNull();
  });

  it('fixes the verdict while the result cannot be fetched, whatever the upstream says later', () => {
    const finishing = reduce(
      followingTask(),
      [status({ phase: 'failed' }), resultLater],
      sampleContext(startTime),
    ).task;
    expect(finishing).toMatchObject({ stage: 'finishing', verdict: 'failed', trouble: { resultTries: 1 } });
    const later = play(finishing, [
      status({ phase: 'succeeded' }),
      { kind: 'gone', reason: 'x' },
      status({ phase: 'cancelled' }),
    ]);
    expect(later).toMatchObject({ stage: 'finishing', verdict: 'failed' });
    expect(play(later, [{ kind: 'result', result }])).toMatchObject({ stage: 'ended', phase: 'failed' });
  });

  it('comes without the result after five tries to fetch it', () => {
    const four = play(followingTask(), [
      status({ phase: 'succeeded' }),
      ...Array<Observation>(4).fill(resultLater),
    ]);
    expect(four).toMatchObject({ stage: 'finishing', trouble: { resultTries: 4 } });
    const { task, outcome } = reduce(four, [resultLater], sampleContext(startTime));
    expect(task).toMatchObject({ stage: 'ended', ending: 'succeeded' });
    expect(outcome).toMatchObject({ result: { text: 'done, but not to be read' } });
  });

  it('comes without the result when it can’t be fetched at the deadline', () => {
    const finishing = play(followingTask(), [status({ phase: 'failed' }), resultLater]);
    const { task, outcome } = reduce(finishing, [resultLater], sampleContext(finishing.deadline));
    expect(task).toMatchObject({ stage: 'ended', ending: 'failed' });
    expect(outcome).toMatchObject({ result: { text: 'done, but not to be read' } });
  });

  it('keeps the verdict of a finishing task at its deadline', () => {
    const finishing = reduce(
      followingTask(),
      [status({ phase: 'succeeded' }), resultLater],
      sampleContext(startTime),
    ).task;
    const { task, outcome } = reduce(finishing, [{ kind: 'deadline' }], sampleContext(finishing.deadline));
    expect(task).toMatchObject({ stage: 'ended', phase: 'succeeded', ending: 'succeeded' });
    expect(outcome).toMatchObject({ result: { isError: false, text: expect.stringContaining('HTTP 503') } });
  });

  it('never changes a task that has ended', () => {
    const ended = play(followingTask(), [status({ phase: 'cancelled', message: 'stopped by hand' })]);
    expect(ended).toMatchObject({ stage: 'ended', phase: 'cancelled', message: 'stopped by hand' });
    for (const late of [
      status({ phase: 'succeeded' }),
      { kind: 'cancel_requested' },
      { kind: 'deadline' },
    ] as Observation[]) {
      expect(reduce(ended, [late], sampleContext(startTime + minute)).task).toBe(ended);
    }
  });
});

describe('cancel', () => {
  it('stays working, with the wish stored, until the upstream says what happened', () => {
    const asked = reduce(followingTask(), [{ kind: 'cancel_requested' }], sampleContext(startTime));
    expect(asked.task).toMatchObject({
      stage: 'following',
      cancel: { state: 'requested' },
      message: 'Cancel requested',
    });
    expect(asked).toMatchObject({ durable: true, schedule: { dueAt: startTime } });
    const sent = reduce(
      asked.task,
      [{ kind: 'cancel_outcome', afterMs: 0, outcome: { kind: 'sent' } }],
      sampleContext(startTime),
    );
    expect(sent.task).toMatchObject({ stage: 'following', cancel: { state: 'sent' } });
    expect(play(sent.task, [status({ phase: 'succeeded' })]).verdict).toBe('succeeded');
  });

  it('says so when the upstream cannot cancel, and follows the job to its end', () => {
    const plan = samplePlan({ canCancel: false });
    const task = play(followingTask(), [{ kind: 'cancel_requested' }, status({ message: '3/9' })], { plan });
    expect(task.message).toBe(
      '3/9. Cancel requested, but this upstream cannot cancel jobs: following it to its end',
    );
  });

  it('tries again while the upstream cannot be told', () => {
    const task = play(followingTask(), [
      { kind: 'cancel_requested' },
      {
        kind: 'cancel_outcome',
        afterMs: 0,
        outcome: { kind: 'later', reason: 'HTTP 503', retryAfterMs: undefined },
      },
    ]);
    expect(task.cancel?.state).toBe('requested');
  });

  it('withdraws all questions and asks none any more', () => {
    const asking = play(followingTask(), [status({ phase: 'input_required', questions: [question()] })]);
    const task = play(asking, [
      { kind: 'cancel_requested' },
      status({ phase: 'input_required', questions: [question()] }),
    ]);
    expect(task).toMatchObject({ questions: [], phase: 'working' });
  });
});

describe('questions', () => {
  const waiting = status({ phase: 'input_required', questions: [question()] });
  const yes = { action: 'accept' as const, content: { approve: true } };
  const delivered = (key: string): Observation => ({
    kind: 'answer_outcome',
    key,
    outcome: { kind: 'delivered' },
  });

  it('asks once, under the same key, while the same question stands', () => {
    const task = play(followingTask(), [waiting, waiting, waiting]);
    expect(task.questions.map(({ key }) => key)).toEqual(['approve-1']);
    expect(task.phase).toBe('input_required');
  });

  it('reads as working when there is no question a client could answer', () => {
    expect(play(followingTask(), [status({ phase: 'input_required' })]).phase).toBe('working');
  });

  it('keeps an accepted answer until the upstream has it, and does not ask meanwhile', () => {
    const task = play(followingTask(), [
      waiting,
      { kind: 'answers', answers: [{ key: 'approve-1', ...yes }] },
      waiting,
    ]);
    expect(task).toMatchObject({
      questions: [],
      answers: [{ key: 'approve-1', stem: 'approve' }],
      phase: 'working',
    });
  });

  it('ignores answers to keys that are not open', () => {
    const asking = play(followingTask(), [waiting]);
    expect(play(asking, [{ kind: 'answers', answers: [{ key: 'other-1', ...yes }] }])).toBe(asking);
  });

  it('keeps the other questions open after a partial answer', () => {
    const two = status({ phase: 'input_required', questions: [question(), question({ stem: 'reason' })] });
    const task = play(followingTask(), [two, { kind: 'answers', answers: [{ key: 'approve-1', ...yes }] }]);
    expect(task).toMatchObject({ phase: 'input_required', questions: [{ key: 'reason-1' }] });
  });

  it('is quiet for 60 seconds after a delivery, then asks under a new key', () => {
    const answered = play(followingTask(), [
      waiting,
      { kind: 'answers', answers: [{ key: 'approve-1', ...yes }] },
      delivered('approve-1'),
    ]);
    expect(play(answered, [waiting], { every: minute }).questions).toEqual([]);
    expect(play(answered, [waiting], { every: 2 * minute }).questions).toMatchObject([{ key: 'approve-2' }]);
  });

  it('asks anew at once when the upstream was seen outside input_required, or its captures changed', () => {
    const answered = play(followingTask(), [
      waiting,
      { kind: 'answers', answers: [{ key: 'approve-1', ...yes }] },
      delivered('approve-1'),
    ]);
    expect(play(answered, [status(), waiting]).questions).toMatchObject([{ key: 'approve-2' }]);
    const other = status({ phase: 'input_required', questions: [question({ fingerprint: 'f2' })] });
    expect(play(answered, [other]).questions).toMatchObject([{ key: 'approve-2' }]);
  });

  it('asks again with the reason when the upstream refuses the answer, at most three times', () => {
    let task = play(followingTask(), [waiting]);
    for (let round = 1; round <= 4; round++) {
      expect(task.questions).toMatchObject([{ key: `approve-${round}` }]);
      task = play(task, [
        { kind: 'answers', answers: [{ key: `approve-${round}`, ...yes }] },
        {
          kind: 'answer_outcome',
          key: `approve-${round}`,
          outcome: { kind: 'refused', reason: 'HTTP 422: no' },
        },
        waiting,
      ]);
      if (round < 4)
        expect(task.questions[0]?.message).toBe('The last answer was refused: HTTP 422: no. Approve?');
    }
    expect(task.questions).toEqual([]);
  });

  it('is quiet after a decline without a handler until the state changes', () => {
    const declined = play(followingTask(), [
      waiting,
      { kind: 'answers', answers: [{ key: 'approve-1', action: 'decline', content: {} }] },
      { kind: 'answer_outcome', key: 'approve-1', outcome: { kind: 'unhandled' } },
    ]);
    expect(play(declined, [waiting, waiting], { every: 10 * minute }).questions).toEqual([]);
    expect(play(declined, [status(), waiting]).questions).toMatchObject([{ key: 'approve-2' }]);
  });

  it('supersedes an open question whose own captures changed, under a new key', () => {
    const other = status({
      phase: 'input_required',
      questions: [question({ fingerprint: 'f2', message: 'And now?' })],
    });
    expect(play(followingTask(), [waiting, other]).questions).toMatchObject([
      { key: 'approve-2', message: 'And now?' },
    ]);
  });
});

describe('a stage with a limit', () => {
  const plan = samplePlan({
    stages: [
      { name: 'queue', withinMs: 5 * minute },
      { name: 'build', withinMs: undefined },
    ],
  });

  it('ends a job that does not get beyond it in time as lost', () => {
    const before = play(followingTask(), [status()], { every: 5 * minute - 1, plan });
    expect(before.stage).toBe('following');
    const after = play(followingTask(), [status()], { every: 5 * minute, plan });
    expect(after).toMatchObject({ stage: 'ended', ending: 'job_lost' });
    expect(after.message).toContain('the job did not get beyond queue within 5m');
  });

  it('leaves alone a job that has gone on, has ended or waits for an answer', () => {
    for (const seen of [
      status({ statusStage: 1 }),
      status({ phase: 'input_required', questions: [question()] }),
      status({ phase: 'succeeded' }),
    ]) {
      const task = play(followingTask(), [seen, seen], { every: 5 * minute, plan });
      expect(task.ending).not.toBe('job_lost');
    }
  });

  it('counts from when the job was first seen in the stage', () => {
    const limited = samplePlan({
      stages: [
        { name: 'queue', withinMs: undefined },
        { name: 'build', withinMs: 5 * minute },
      ],
    });
    const seen = status({ statusStage: 1 });
    const task = play(followingTask(), [status(), seen, seen], { every: 4 * minute, plan: limited });
    expect(task).toMatchObject({ stage: 'following', stageSince: startTime + 8 * minute });
    expect(play(task, [seen, seen], { every: 7 * minute, plan: limited }).ending).toBe('job_lost');
  });
});

describe('a question whose answers the upstream refuses', () => {
  it('is asked no more after the fourth, and the message says why', () => {
    const waits = status({ phase: 'input_required', questions: [question()] });
    let task = followingTask();
    for (let round = 1; round <= 4; round++) {
      task = play(task, [waits]);
      const key = task.questions[0]?.key ?? '';
      expect(key).toBe(`approve-${round}`);
      const refused = { kind: 'refused' as const, reason: 'the note is rude' };
      task = play(task, [
        { kind: 'answers', answers: [{ key, action: 'accept', content: {} }] },
        { kind: 'answer_outcome', key, outcome: refused },
      ]);
    }
    task = play(task, [waits]);
    expect(task.questions).toEqual([]);
    expect(task.message).toContain(
      'refused every answer to its question, the last one with: the note is rude',
    );
  });
});
