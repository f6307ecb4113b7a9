// What is thrown before a byte goes out, as a reply.

import { EvaluationFault } from '../../config/expression.ts';
import { TaskferryError } from '../../errors.ts';
import { BudgetEnded } from '../budget.ts';
import type { StepReply } from '../driver.ts';
import { ConnectRefused } from './connectors.ts';
import { RequestFault } from './request-fault.ts';

/** @throws `error` itself when it is a fault of ours. */
export function notSent(error: unknown): Extract<StepReply, { kind: 'failed' }> {
  if (error instanceof RequestFault)
    return { kind: 'failed', code: error.code, sent: false, reason: error.message };
  if (error instanceof EvaluationFault) {
    return { kind: 'failed', code: 'invalid_request', sent: false, reason: error.message };
  }
  if (error instanceof TaskferryError)
    return { kind: 'failed', code: 'credential', sent: false, reason: error.message };
  if (error instanceof ConnectRefused)
    return { kind: 'failed', code: 'connect', sent: false, reason: error.message };
  if (error instanceof BudgetEnded) {
    return {
      kind: 'failed',
      code: 'aborted',
      sent: false,
      reason: `given up before it was sent: ${error.message}`,
    };
  }
  throw error;
}
