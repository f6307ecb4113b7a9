// Questions before anything is started (`confirm:`): multi-round-trip requests with a signed state.

import { randomBytes, randomUUID } from 'node:crypto';
import {
  createRequestStateCodec,
  ProtocolError,
  ProtocolErrorCode,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { ConfirmQuestion } from '../config/adapter.ts';
import { EvaluationFault, type Scope } from '../config/expression.ts';
import { type JsonObject, stringifyExact } from '../exact-json.ts';
import type { Store } from '../stores/store.ts';
import { hashOf } from '../tasks/new-task.ts';
import { readAnswer } from './answers.ts';
import { exactIntegers } from './arguments.ts';
import type { ServedTool } from './catalog.ts';
import { errorResult } from './render.ts';
import {
  capabilitiesOf,
  declaresElicitation,
  elicitationRequired,
  isLegacy,
  localCaller,
} from './request.ts';
import { elicitation } from './snapshot.ts';

/** What travels through the client between rounds; signed, so that no answer can be skipped or changed. */
interface ConfirmState {
  tool: string;
  args: string;
  digest: string;
  /** The client's own start key: one confirmation starts one job, under whatever key. */
  startKey: string | undefined;
  /** Accepted answers so far, as exact JSON text. */
  answers: string;
  nonce: string;
}

export type StateCodec = Pick<RequestStateCodec<ConfirmState>, 'mint' | 'verify'>;

/** How long a requestState is valid. */
export const stateSeconds = 600;

/** @param keys the first signs; all of them verify, so that a key can be rotated. At least 32 bytes each. */
export function createStateCodec(keys: readonly string[]): StateCodec {
  const codecs = keys.map((key) =>
    createRequestStateCodec<ConfirmState>({ key, ttlSeconds: stateSeconds, bind: () => localCaller }),
  );
  const [first] = codecs;
  if (first === undefined) throw new Error('a request state codec needs a key');
  return {
    mint: (payload, context) => first.mint(payload, context),
    async verify(state, context) {
      let failure: unknown;
      for (const codec of codecs) {
        try {
          return await codec.verify(state, context);
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    },
  };
}

/** The configured keys; without any the installation's own, which is made once and kept in the store. */
export async function stateKeys(
  store: Pick<Store, 'setting'>,
  configured: readonly string[],
): Promise<readonly string[]> {
  if (configured.length > 0) return configured;
  return [await store.setting('request_state_key', () => randomBytes(32).toString('base64url'))];
}

export type Confirmed =
  /** Every question that applies is answered. `nonce` identifies this start: a replay gives the same task. */
  | { kind: 'confirmed'; answers: JsonObject; nonce: string | undefined }
  /** The result to answer with instead of starting: the next question, or a refusal. */
  | { kind: 'answer'; result: object };

export async function confirm(
  served: ServedTool,
  args: JsonObject,
  env: JsonObject,
  startKey: string | undefined,
  codec: StateCodec,
  context: ServerContext,
): Promise<Confirmed> {
  if (served.tool.confirm.length === 0) return { kind: 'confirmed', answers: {}, nonce: undefined };
  const state = context.mcpReq.requestState<ConfirmState>();
  const argsHash = hashOf(args);
  if (state !== undefined && !(belongs(state, served, argsHash) && state.startKey === startKey)) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'requestState belongs to another call');
  }
  const answers = state === undefined ? {} : answersOf(state, served);
  const nonce = state?.nonce ?? randomUUID();
  const responses = state === undefined ? {} : (context.mcpReq.inputResponses ?? {});
  for (const question of served.tool.confirm) {
    const scope: Scope = { args, confirm: answers, env };
    if (Object.hasOwn(answers, question.key) || !applies(question, scope)) continue;
    const response = Object.hasOwn(responses, question.key) ? responses[question.key] : undefined;
    const answer = response === undefined ? undefined : readAnswer(question.schema, response);
    if (answer?.kind === 'answer' && answer.action !== 'accept') {
      return { kind: 'answer', result: errorResult(`${served.name}: declined, nothing was started.`) };
    }
    if (answer?.kind === 'answer') {
      answers[question.key] = answer.content;
      continue;
    }
    const reason = answer?.kind === 'invalid' ? `${answer.message}. ` : '';
    const payload: ConfirmState = {
      tool: served.name,
      args: argsHash,
      digest: served.adapter.digest,
      startKey,
      answers: stringifyExact(answers),
      nonce,
    };
    return { kind: 'answer', result: await ask(served, question, scope, reason, payload, codec, context) };
  }
  return { kind: 'confirmed', answers, nonce };
}

function answersOf(state: ConfirmState, served: ServedTool): JsonObject {
  const stored = JSON.parse(state.answers) as { [key: string]: JsonObject };
  return Object.fromEntries(
    Object.entries(stored).map(([key, content]) => {
      const schema = served.tool.confirm.find((question) => question.key === key)?.schema ?? {};
      return [key, exactIntegers(schema, content) as JsonObject];
    }),
  );
}

function belongs(state: ConfirmState, served: ServedTool, argsHash: string): boolean {
  return state.tool === served.name && state.args === argsHash && state.digest === served.adapter.digest;
}

/** A condition that can't be evaluated asks: skipping a safety question would be the worse mistake. */
function applies(question: ConfirmQuestion, scope: Scope): boolean {
  if (question.when === undefined) return true;
  try {
    return question.when.evaluate(scope) !== false;
  } catch (error) {
    if (error instanceof EvaluationFault) return true;
    throw error;
  }
}

async function ask(
  served: ServedTool,
  question: ConfirmQuestion,
  scope: Scope,
  reason: string,
  payload: ConfirmState,
  codec: StateCodec,
  context: ServerContext,
): Promise<object> {
  if (isLegacy(context)) {
    return errorResult(
      `${served.name} asks a question before it starts, which needs a client that supports elicitation. Nothing was started.`,
    );
  }
  if (!declaresElicitation(capabilitiesOf(context))) throw elicitationRequired();
  return {
    resultType: 'input_required',
    inputRequests: {
      [question.key]: elicitation(reason + question.message.render(scope), question.schema),
    },
    requestState: await codec.mint(payload, context),
  };
}
