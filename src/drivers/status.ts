// Reading a job's status: stages, state rules, and what a bad reply means. A poll error is never an outcome.

import type { Phase, StatusStage, Tool } from '../config/adapter.ts';
import type { Scope } from '../config/expression.ts';
import { type Json, type JsonObject, stringifyExact } from '../exact-json.ts';
import { badPoll, besideStatus } from './bad-poll.ts';
import type { JobView, Poll, PollObservation, Response } from './driver.ts';
import { runListedStep, withFetched } from './listed-steps.ts';
import { readQuestions } from './questions.ts';
import { attempt, evaluate, holds, type Reply, runStep, type StepContext, scopeOf, shown } from './steps.ts';

/** Reads the status: the current stage and, as each is left, the ones after it. */
export async function readStatus(context: StepContext, tool: Tool, view: JobView): Promise<Poll> {
  let job = view.job;
  for (let index = view.statusStage; ; index++) {
    const stage = tool.status[index];
    if (stage === undefined) throw new Error(`${tool.key} has no status stage ${index}`);
    const scope = scopeOf(context, { ...view, job });
    const run = await runStep(context, stage, scope);
    const isLast = index + 1 >= tool.status.length;
    if (run.kind === 'skipped') {
      if (!isLast) continue;
      return { observation: working(job, view, index), reply: undefined };
    }
    if (run.kind !== 'done') {
      const observation = badPoll(context, run);
      // Stages left in this poll are left again in the next one: nothing of a failed poll is kept.
      return { observation, reply: run.kind === 'unexpected' ? run.reply.response : undefined };
    }
    job = { ...job, ...run.captured };
    const further = await readFurther(context, stage, { ...view, job }, run.reply.response);
    if (further.kind === 'failed') return { observation: further.observation, reply: run.reply.response };
    job = further.job;
    const missing = run.missing.length + further.missing;
    if (!isLast && missing === 0 && stage.endsByCapture) continue;
    const look = { reply: run.reply, fetched: further.fetched };
    return judge(context, tool, stage, { ...view, job, statusStage: index }, look, view.job);
  }
}

type Further =
  | { kind: 'read'; fetched: JsonObject; job: JsonObject; missing: number }
  | { kind: 'failed'; observation: PollObservation };

/** The further requests of one look (`fetch`). One that fails leaves the status unknown: half a view is none. */
async function readFurther(
  context: StepContext,
  stage: StatusStage,
  view: JobView,
  response: Response,
): Promise<Further> {
  let { job } = view;
  let fetched: JsonObject = {};
  let missing = 0;
  for (const step of stage.fetch) {
    const scope = scopeOf(context, { ...view, job }, { response, fetched });
    const run = await runListedStep(context, step, scope);
    if (run.kind === 'failed' || run.kind === 'unexpected')
      return { kind: 'failed', observation: besideStatus(badPoll(context, run), step.name) };
    // A step that is left out has captured nothing that would end the stage.
    if (run.kind === 'skipped') missing += step.capture.filter(({ optional }) => !optional).length;
    if (run.kind === 'done') {
      job = { ...job, ...run.captured };
      missing += run.missing.length;
    }
    fetched = withFetched(fetched, step, run);
  }
  return { kind: 'read', fetched, job, missing };
}

async function judge(
  context: StepContext,
  tool: Tool,
  stage: StatusStage,
  view: JobView,
  { reply, fetched }: { reply: Reply; fetched: JsonObject },
  before: JsonObject,
): Promise<Poll> {
  const { response, retryAfterMs } = reply;
  const scope = scopeOf(context, view, { response, fetched });
  const reading = readState(context, stage, scope);
  if (reading.kind === 'unreadable')
    return { observation: { kind: 'unreadable', reason: reading.reason }, reply: response };
  const message = messageOf(context, stage, scope);
  const base = {
    kind: 'status' as const,
    phase: reading.phase,
    job: added(before, view.job),
    statusStage: view.statusStage,
    questions: [],
    ...(message !== undefined && { message }),
    ...(reading.unknownWord !== undefined && { unknownWord: reading.unknownWord }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
  if (reading.phase !== 'input_required' || tool.ask.length === 0)
    return { observation: base, reply: response };
  const asking = await readQuestions(context, tool, view, response);
  if (asking.kind === 'failed') return { observation: asking.observation, reply: response };
  const job = { ...base.job, ...asking.job };
  return { observation: { ...base, job, questions: asking.questions }, reply: asking.reply };
}

type StateReading =
  | { kind: 'read'; phase: Phase; unknownWord?: string }
  | { kind: 'unreadable'; reason: string };

/** Tries the rules in their order; the first that matches decides. Absence is no outcome. */
function readState(context: StepContext, { name, state }: StatusStage, scope: Scope): StateReading {
  const word = state.of && evaluate(context, state.of, scope, `${name}: state.of`);
  for (const rule of state.rules) {
    if (
      'words' in rule
        ? word !== undefined && rule.words.some((known) => sameWord(known, word))
        : 'always' in rule
          ? rule.always
          : holds(context, rule.when, scope, `${name}: state.${rule.phase}`)
    ) {
      return { kind: 'read', phase: rule.phase };
    }
  }
  if (state.of !== undefined && (word === undefined || word === null)) {
    return { kind: 'unreadable', reason: `\`${state.of.source}\` gives nothing` };
  }
  const named =
    word === undefined
      ? 'that no rule matches'
      : `"${typeof word === 'string' ? word : stringifyExact(word)}"`;
  const unknownWord = shown(context, named, 100);
  context.unknownStatus(unknownWord);
  return { kind: 'read', phase: 'working', unknownWord };
}

/** Words are compared exactly; a whole number equals itself however it was spelt. */
function sameWord(known: Json, word: Json): boolean {
  if (typeof known === 'number' && typeof word === 'bigint')
    return BigInt(Math.trunc(known)) === word && Number.isInteger(known);
  if (typeof known === 'bigint' && typeof word === 'number')
    return Number.isInteger(word) && known === BigInt(word);
  return known === word;
}

function messageOf(context: StepContext, stage: StatusStage, scope: Scope): string | undefined {
  const text =
    stage.message && attempt(context, `${stage.name}: message`, () => stage.message?.render(scope));
  const line = text === undefined ? '' : shown(context, text);
  return line === '' ? undefined : line;
}

function added(before: JsonObject, after: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => before[name] !== value));
}

function working(job: JsonObject, view: JobView, statusStage: number): PollObservation {
  return { kind: 'status', phase: 'working', job: added(view.job, job), statusStage, questions: [] };
}
