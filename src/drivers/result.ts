// From an ended job to its result: fetches, text, structured content, links. The job's verdict decides isError,
// never a failed fetch; what could not be had is said in the text.

import type { ResultMapping, Tool } from '../config/adapter.ts';
import type { Scope } from '../config/expression.ts';
import { type Json, type JsonObject, stringifyExact } from '../exact-json.ts';
import { cleanText, cleanValue } from './clean-text.ts';
import { cutNotes } from './cut-note.ts';
import {
  type JobResult,
  type JobView,
  type Poll,
  type PollObservation,
  type Response,
  type ResultOutcome,
  verdictText,
  withoutResult,
} from './driver.ts';
import { runListedStep, withFetched } from './listed-steps.ts';
import { readStatus } from './status.ts';
import { attempt, isPassing, reasonOf, type StepContext, scopeOf, shown, statusOf } from './steps.ts';

export async function readResult(
  context: StepContext,
  tool: Tool,
  view: JobView,
  verdict: 'succeeded' | 'failed',
  poll: Poll | undefined,
): Promise<ResultOutcome> {
  const mapping = verdict === 'succeeded' ? tool.result : tool.failure;
  const isError = verdict === 'failed';
  const { observation, reply } = poll ?? (await readStatus(context, tool, view));
  const ended = observation.kind === 'status' && observation.phase === verdict;
  const message = ended ? observation.message : undefined;
  const standard = message ?? verdictText(isError);
  if (mayPass(observation)) {
    return later(observation.reason, 'retryAfterMs' in observation ? observation : {}, isError);
  }
  // The job was removed or started again since it ended: what it is now says nothing about how it ended.
  let response: Response = ended && reply !== undefined ? reply : { body: null };
  let { job } = view;
  let fetched: JsonObject = {};
  for (const step of mapping.fetch) {
    const scope = scopeOf(context, { ...view, job }, { response, fetched });
    const run = await runListedStep(context, step, scope, { maxBytes: mapping.maxBytes });
    fetched = withFetched(fetched, step, run);
    if (run.kind === 'each') continue;
    if (run.kind === 'done') {
      response = run.reply.response;
      job = { ...job, ...run.captured };
    } else if (
      run.kind === 'failed' &&
      run.failure.code !== 'too_large' &&
      run.failure.code !== 'invalid_request'
    ) {
      return later(shown(context, run.failure.reason), {}, isError, standard);
      // A 403 is about the result alone, as an expired link gives: the credential was good for the status.
    } else if (run.kind === 'unexpected' && (isPassing(run) || statusOf(run.reply) === 401)) {
      return later(run.reason, run.reply, isError, standard);
    } else if (run.kind !== 'skipped') {
      return { kind: 'ready', result: withoutResult(isError, reasonOf(context, run), standard) };
    }
  }
  return {
    kind: 'ready',
    result: render(
      context,
      mapping,
      scopeOf(context, { ...view, job }, { response, fetched }),
      isError,
      standard,
    ),
  };
}

/** The status can't be read for the moment; what the result needs of it may be there later. */
function mayPass(
  observation: PollObservation,
): observation is Extract<
  PollObservation,
  { kind: 'unreachable' | 'credential' | 'unreadable' | 'rejected' }
> {
  return observation.kind !== 'status' && observation.kind !== 'missing' && observation.kind !== 'gone';
}

/** A `call:` tool: one exchange, mapped like a result. Whatever goes wrong is an error the caller can read. */
export async function callOnce(
  context: StepContext,
  tool: Tool,
  view: JobView,
  signal?: AbortSignal,
): Promise<JobResult> {
  let response: Response = { body: null };
  let { job } = view;
  let fetched: JsonObject = {};
  for (const step of tool.create) {
    const scope = scopeOf(context, { ...view, job }, { response, fetched });
    const run = await runListedStep(context, step, scope, {
      maxBytes: tool.result.maxBytes,
      forCaller: true,
      ...(signal && { signal }),
    });
    fetched = withFetched(fetched, step, run);
    if (run.kind === 'done') {
      response = run.reply.response;
      job = { ...job, ...run.captured };
    } else if (run.kind === 'failed' || run.kind === 'unexpected') return failure(reasonOf(context, run));
  }
  const { body } = response;
  const standard =
    body === null ? 'Done.' : cleanText(typeof body === 'string' ? body : stringifyExact(body, 2));
  return render(
    context,
    tool.result,
    scopeOf(context, { ...view, job }, { response, fetched }),
    false,
    context.redact(standard),
    tool.result.text === undefined && tool.result.structured === undefined,
  );
}

function render(
  context: StepContext,
  mapping: ResultMapping,
  scope: Scope,
  isError: boolean,
  standard: string,
  showsBody = false,
): JobResult {
  const missing: string[] = [];
  const rendered = <T>(what: string, run: () => T | undefined): T | undefined => {
    const value = attempt(context, `${isError ? 'failure' : 'result'}: ${what}`, run);
    if (value === undefined) missing.push(what);
    return value;
  };
  const structured = mapping.structured && rendered('structured', () => mapping.structured?.render(scope));
  const template = mapping.text;
  const own = template && rendered('text', () => template.render(scope));
  const text = own ?? (structured === undefined ? standard : stringifyExact(structured));
  const links = mapping.links.flatMap(({ uri, name, mimeType, description }) => {
    const link = rendered('link', () => ({
      uri: context.redact(uri.render(scope)),
      name: name.render(scope),
      description: description?.render(scope),
    }));
    if (link === undefined) return [];
    if (!isLink(link.uri)) {
      missing.push('link');
      return [];
    }
    return [
      {
        uri: link.uri,
        name: shown(context, link.name),
        ...(mimeType !== undefined && { mimeType }),
        ...(link.description !== undefined && { description: shown(context, link.description) }),
      },
    ];
  });
  const clean = structured === undefined ? undefined : cleanValue(structured, context.redact);
  const kept = clean !== undefined && fits(clean, mapping.maxBytes) ? clean : undefined;
  if (kept === undefined && clean !== undefined) missing.push('structured (too large)');
  const note =
    missing.length > 0
      ? `\n(${missing.join(', ')} of the result could not be made from the upstream's reply)`
      : '';
  const cut = showsBody || readsReplies(mapping) ? cutNotes(scope).map((line) => `\n${line}`) : [];
  return {
    isError,
    text: [capBytes(context.redact(cleanText(text)), mapping.maxBytes), ...cut, note].join(''),
    structured: kept,
    links,
  };
}

function readsReplies({ text, structured }: ResultMapping): boolean {
  const reads = [...(text?.reads ?? []), ...(structured?.reads ?? [])];
  return reads.some((name) => name === 'response' || name.split('.')[0] === 'fetched');
}

/** Longest URI of a link. A cut one would lead nowhere, so a longer one is left out. */
const linkLimit = 8_192;

/** An absolute URI: a path on the upstream's own machine is no link, and code is none either. */
function isLink(uri: string): boolean {
  if (uri.length > linkLimit || cleanText(uri) !== uri) return false;
  const url = URL.parse(uri);
  return url !== null && !/^(javascript|data|file|blob):$/.test(url.protocol);
}

function fits(value: Json, maxBytes: number): boolean {
  return Buffer.byteLength(stringifyExact(value)) <= maxBytes;
}

function capBytes(text: string, limit: number): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= limit) return text;
  const cut = new TextDecoder().decode(Buffer.from(text).subarray(0, limit), { stream: true });
  return `${cut}\n(cut: ${bytes} bytes, ${limit} are kept)`;
}

function later(
  reason: string,
  from: { retryAfterMs?: number },
  isError: boolean,
  standard?: string,
): ResultOutcome {
  return {
    kind: 'later',
    reason,
    retryAfterMs: from.retryAfterMs,
    fallback: withoutResult(isError, reason, standard),
  };
}

function failure(text: string): JobResult {
  return { isError: true, text, structured: undefined, links: [] };
}
