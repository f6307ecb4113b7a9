// What is refused of a request's body before anything else looks at it, each as a JSON-RPC error.

import { ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { NextFunction, Request, Response } from 'express';
import { sizeOf } from './bounds.ts';
import { rpcError } from './request.ts';

/** Deeper bodies would overflow the stack of whoever looks at them next. Arguments have a lower limit of their own. */
const maxBodyDepth = 100;
/** Most values of a call's arguments. Fewer may be too many for a tool, which says so in its own words. */
const maxArgumentValues = 100_000;
/** Most values beside the arguments: a capability or an answer more costs many times what an argument costs. */
const maxOtherValues = 5_000;

export function checkBody(request: Request, response: Response, next: NextFunction): void {
  const { body } = request as { body: unknown };
  const refusal = tooLarge(body) ?? wrongResponses(body);
  if (refusal === undefined) next();
  else response.status(refusal.status).json(rpcError(refusal.code, refusal.text, { id: idOf(body) }));
}

interface Refusal {
  status: number;
  code: number;
  text: string;
}

function tooLarge(body: unknown): Refusal | undefined {
  const { others, args } = apart(body);
  const rest = sizeOf(others, { depth: maxBodyDepth, values: maxOtherValues });
  // The arguments stand two levels down, in `params` of the body.
  const own = sizeOf(args, { depth: maxBodyDepth - 2, values: maxArgumentValues });
  const text =
    rest.depth > maxBodyDepth || own.depth > maxBodyDepth - 2
      ? `nested deeper than ${maxBodyDepth} levels`
      : own.values > maxArgumentValues
        ? `params.arguments holds more than ${maxArgumentValues} values`
        : rest.values > maxOtherValues
          ? `more than ${maxOtherValues} values beside params.arguments`
          : undefined;
  return text === undefined
    ? undefined
    : { status: 400, code: ProtocolErrorCode.InvalidRequest, text: `Invalid request: ${text}` };
}

/** The arguments of a call, and all else. */
function apart(body: unknown): { others: unknown; args: unknown } {
  if (!isMap(body) || body.method !== 'tools/call' || !isMap(body.params))
    return { others: body, args: undefined };
  const { arguments: args, ...params } = body.params;
  return { others: { ...body, params }, args };
}

/** The SDK takes whatever is no map for no answers at all, and acknowledges them. */
function wrongResponses(body: unknown): Refusal | undefined {
  if (!isMap(body) || !isMap(body.params) || !Object.hasOwn(body.params, 'inputResponses')) return undefined;
  if (isMap(body.params.inputResponses)) return undefined;
  const text = 'Invalid params: inputResponses must be an object of answers by key';
  return { status: 200, code: ProtocolErrorCode.InvalidParams, text };
}

function idOf(body: unknown): string | number | null {
  const id = isMap(body) ? body.id : undefined;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

function isMap(value: unknown): value is { [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
