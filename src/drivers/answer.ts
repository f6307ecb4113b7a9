// Delivering the answer to a question of a waiting job.

import type { AskQuestion, Step, Tool } from '../config/adapter.ts';
import type { Answer, AnswerOutcome, JobView, Poll } from './driver.ts';
import { runStep, type StepContext, scopeOf, unsent } from './steps.ts';

/** Sends an answer by the steps that the adapter names for the action. Sent again, it starts with the first of them. */
export async function deliverAnswer(
  context: StepContext,
  tool: Tool,
  view: JobView,
  answer: Answer,
  poll: Poll,
): Promise<AnswerOutcome> {
  const ask = tool.ask.find((question) => question.key === (answer.ask ?? answer.stem));
  const steps = ask === undefined ? [] : handlerOf(ask, answer.action);
  const scope = {
    ...scopeOf(context, view, { response: poll.reply, answer: answer.content }),
    ...(answer.item !== undefined && { item: answer.item }),
  };
  let delivered = false;
  for (const step of steps) {
    const run = await runStep(context, step, scope);
    if (run.kind === 'skipped') continue;
    if (run.kind === 'failed' || run.kind === 'unexpected') return unsent(context, run);
    delivered = true;
  }
  return delivered ? { kind: 'delivered' } : { kind: 'unhandled' };
}

function handlerOf(ask: AskQuestion, action: Answer['action']): readonly Step[] {
  if (action === 'accept') return ask.onAccept;
  return action === 'decline' ? ask.onDecline : ask.onCancel;
}
