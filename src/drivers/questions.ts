// The questions a waiting job asks (`ask:`), and delivering the answers to them.

import { createHash } from 'node:crypto';
import type { AskQuestion, Tool } from '../config/adapter.ts';
import { type JsonObject, stringifyExact } from '../exact-json.ts';
import { badPoll, besideStatus } from './bad-poll.ts';
import type { Answer, AnswerOutcome, JobView, Poll, PollObservation, Question, Response } from './driver.ts';
import { attempt, holds, isPassing, runStep, type StepContext, scopeOf, shown, statusOf } from './steps.ts';

export type Asking =
  | { kind: 'asked'; questions: readonly Question[]; job: JsonObject; reply: Response }
  /** A question's own fetch failed: the open questions must not look withdrawn. */
  | { kind: 'failed'; observation: PollObservation };

export async function readQuestions(
  context: StepContext,
  tool: Tool,
  view: JobView,
  response: Response,
): Promise<Asking> {
  const questions: Question[] = [];
  let captured: JsonObject = {};
  let reply = response;
  for (const ask of tool.ask) {
    let own: JsonObject = {};
    if (ask.fetch !== undefined) {
      const run = await runStep(
        context,
        ask.fetch,
        scopeOf(context, { ...view, job: { ...view.job, ...captured } }, { response: reply }),
      );
      if (run.kind === 'failed' || run.kind === 'unexpected')
        return {
          kind: 'failed',
          observation: besideStatus(badPoll(context, run), `the question ${ask.key}`),
        };
      if (run.kind === 'done') {
        own = run.captured;
        reply = run.reply.response;
      }
    }
    captured = { ...captured, ...own };
    const scope = scopeOf(context, { ...view, job: { ...view.job, ...captured } }, { response: reply });
    if (ask.when !== undefined && !holds(context, ask.when, scope, `ask ${ask.key}: when`)) continue;
    const message = attempt(context, `ask ${ask.key}: message`, () => ask.message.render(scope));
    questions.push({
      stem: ask.key,
      message: shown(context, message ?? `The job asks: ${ask.key}`),
      schema: ask.schema,
      fingerprint: createHash('sha256').update(stringifyExact(own)).digest('base64url').slice(0, 16),
    });
  }
  return { kind: 'asked', questions, job: captured, reply };
}

/** Sends an answer by the step that the adapter names for the action. */
export async function deliverAnswer(
  context: StepContext,
  tool: Tool,
  view: JobView,
  answer: Answer,
  poll: Poll,
): Promise<AnswerOutcome> {
  const ask = tool.ask.find((question) => question.key === answer.stem);
  const step = ask && handlerOf(ask, answer.action);
  if (step === undefined) return { kind: 'unhandled' };
  const run = await runStep(
    context,
    step,
    scopeOf(context, view, { response: poll.reply, answer: answer.content }),
  );
  switch (run.kind) {
    case 'skipped':
      return { kind: 'unhandled' };
    case 'failed':
      return run.failure.code === 'invalid_request'
        ? { kind: 'refused', reason: shown(context, run.failure.reason) }
        : {
            kind: 'later',
            reason: shown(context, run.failure.reason),
            retryAfterMs: undefined,
          };
    case 'unexpected': {
      const status = statusOf(run.reply);
      if (isPassing(run) || status === 401 || status === 403) {
        return { kind: 'later', reason: run.reason, retryAfterMs: run.reply.retryAfterMs };
      }
      return { kind: 'refused', reason: run.reason };
    }
    case 'done':
      return { kind: 'delivered' };
  }
}

function handlerOf(ask: AskQuestion, action: Answer['action']): AskQuestion['onDecline'] {
  if (action === 'accept') return ask.onAccept;
  return action === 'decline' ? ask.onDecline : ask.onCancel;
}
