// From a neutral outcome to wire text, once, when a task ends. Stored and served as it is from then on.

import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { JobResult } from '../drivers/driver.ts';
import { type Json, type JsonObject, parseForWire, stringifyExact } from '../exact-json.ts';
import type { Outcome } from '../tasks/outcome.ts';
import { schemaCheck } from './schema-check.ts';

/**
 * The stored text: `{"result": CallToolResult}`, `{"error": …}`, or `{}` for a cancelled task, whose snapshot has
 * no payload.
 */
export function renderOutcome(outcome: Outcome, output: JsonObject | undefined): string {
  switch (outcome.kind) {
    case 'result':
      return stringifyExact({ result: toolResult(outcome.result, output) });
    case 'cancelled':
      return '{}';
    case 'error':
      return stringifyExact({
        error: {
          code: ProtocolErrorCode.InternalError,
          message: outcome.message,
          data: { reason: outcome.ending },
        },
      });
  }
}

/**
 * The answer to a call whose job ended within it, from the text of {@link renderOutcome}.
 * @throws ProtocolError when the task ended as an error
 */
export function callOutcome(rendered: string | undefined, message: string | undefined): object {
  const { result, error } = parseForWire(rendered ?? '{}') as {
    result?: object;
    error?: { code: number; message: string; data?: unknown };
  };
  if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data);
  return result ?? errorResult(`The job was cancelled. ${message ?? ''}`.trim());
}

/**
 * A `CallToolResult`. It says `resultType: "complete"` also where it stands inside a task: the official client
 * refuses it otherwise.
 */
export function toolResult(result: JobResult, output: JsonObject | undefined): JsonObject {
  const mismatch =
    result.isError || output === undefined ? undefined : mismatchOf(output, result.structured ?? null);
  const isError = result.isError || mismatch !== undefined;
  const text =
    mismatch === undefined
      ? result.text
      : `The job succeeded, but its result does not match the tool's output schema: ${mismatch}\n${result.text}`;
  return {
    resultType: 'complete',
    content: [
      { type: 'text', text },
      ...result.links.map((link): JsonObject => ({ type: 'resource_link', ...link })),
    ],
    ...(result.structured !== undefined && !isError && { structuredContent: result.structured }),
    ...(isError && { isError: true }),
  };
}

/** Why `structured` is not what the tool's `output` promises; the validator knows no bigint, so it sees numbers. */
function mismatchOf(output: JsonObject, structured: Json): string | undefined {
  return schemaCheck(output)(JSON.parse(stringifyExact(structured)));
}

/** An error that a model can read and act on: nothing was started, or it could not be done. */
export function errorResult(text: string): JsonObject {
  return { resultType: 'complete', content: [{ type: 'text', text }], isError: true };
}

export function textResult(text: string): JsonObject {
  return { resultType: 'complete', content: [{ type: 'text', text }] };
}
