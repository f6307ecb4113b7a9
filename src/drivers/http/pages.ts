// A list that comes in pages: page after page is asked for, and their items are one list.

import type { Clock } from '../../clock.ts';
import { EvaluationFault, type Expression, type Scope } from '../../config/expression.ts';
import type { ValueTemplate } from '../../config/template.ts';
import { type Json, type JsonObject, stringifyExact } from '../../exact-json.ts';
import type { StepReply } from '../driver.ts';
import type { HttpStep } from './compiled.ts';
import { fixedTarget } from './fixed-target.ts';
import { nextUrl } from './next-url.ts';
import { RequestFault } from './request-fault.ts';

export const defaultPages = 10;
export const mostPages = 100;
/** Milliseconds after which no further page is asked for. */
const longestRead = 10 * 60_000;

/** How a step goes from one page to the next: by `next` or by `query`. */
export interface Pages {
  /** The list of one page. */
  items: Expression;
  /** URL of the next page; without a value there is none. */
  next: Expression | undefined;
  /** Parameters of the next page, over those of the step; without a value there is none. Reads `page` as well. */
  query: ValueTemplate | undefined;
  /** Another page is asked for only while this holds. Undefined: always. */
  more: Expression | undefined;
  max: number;
}

export interface PageReader {
  /** One request. `maxBytes`: most bytes of its body. */
  ask(step: HttpStep, maxBytes: number): Promise<StepReply>;
  redact(text: string): string;
  clock: Clock;
}

type Reply = Extract<StepReply, { kind: 'reply' }>;

/** A page that can't be had, or is no success, is what the whole step gives. */
export async function readPages(
  reader: PageReader,
  step: HttpStep,
  pages: Pages,
  scope: Scope,
  maxBytes: number,
): Promise<StepReply> {
  const started = reader.clock.monotonic();
  const asked = new Set<string>();
  const items: Json[] = [];
  let current = step;
  let left = maxBytes;
  let last: Reply | undefined;
  for (let number = 1; ; number++) {
    const reply = await reader.ask(current, left);
    if (reply.kind === 'failed') {
      if (last === undefined) return reply;
      // What is larger than what is left: there is more than may be read.
      return reply.code === 'too_large' ? joined(last, items, true) : { ...reply, sent: true };
    }
    if (!reply.ok || reply.unreadable !== undefined) return reply;
    try {
      const page = pageItems(pages, reply, scope);
      for (const item of page) items.push(item);
      left -= Number(reply.response.bytes ?? 0);
      last = reply;
      const counters = { number: BigInt(number + 1), offset: BigInt(items.length) };
      const next = nextStep(step, pages, reply, { ...scope, page: counters }, page.length, reader.redact);
      if (next === undefined) return joined(reply, items, false);
      if (number === 1) asked.add(String(reply.response.url));
      if (asked.has(next.key)) throw new RequestFault('the next page is one that was read before');
      asked.add(next.key);
      if (number >= pages.max || left <= 0) return joined(reply, items, true);
      current = next.step;
    } catch (error) {
      if (error instanceof RequestFault)
        return { kind: 'failed', code: 'invalid_request', sent: true, reason: error.message };
      if (!(error instanceof EvaluationFault)) throw error;
      return { ...reply, unreadable: `can't be read as a page: ${error.message}` };
    }
    if (reader.clock.monotonic() - started > longestRead) {
      const reason = `its pages take longer than ${longestRead / 60_000} minutes`;
      return { kind: 'failed', code: 'timeout', sent: true, reason };
    }
  }
}

function joined(last: Reply, items: Json[], more: boolean): Reply {
  const { bytes: _ofOnePage, ...response } = last.response;
  return { ...last, response: { ...response, body: items, truncated: more || response.truncated === true } };
}

function pageItems(pages: Pages, reply: Reply, scope: Scope): readonly Json[] {
  const items = pages.items.evaluate({ ...scope, response: reply.response as JsonObject });
  if (!Array.isArray(items)) throw new EvaluationFault(`pages.items (${pages.items.source}) gives no list`);
  return items;
}

function nextStep(
  step: HttpStep,
  pages: Pages,
  reply: Reply,
  before: Scope,
  count: number,
  redact: (text: string) => string,
): { step: HttpStep; key: string } | undefined {
  const scope: Scope = { ...before, response: reply.response as JsonObject };
  if (pages.more !== undefined && pages.more.evaluate(scope) !== true) return undefined;
  if (pages.next !== undefined) {
    const next = pages.next.evaluate(scope);
    if (next === undefined || next === null || next === '') return undefined;
    if (typeof next !== 'string')
      throw new EvaluationFault(`pages.next (${pages.next.source}) gives no text`);
    const url = nextUrl(next, String(reply.response.url), 'the next page', redact);
    const target = fixedTarget(url.href, 'the next page');
    return { step: { ...step, target, query: undefined }, key: url.href };
  }
  // Counters go on for ever: a page without items is the last one.
  if (pages.query === undefined || (count === 0 && !pages.query.reads.has('response'))) return undefined;
  const given = pages.query.render(scope);
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new EvaluationFault('pages.query gives no map');
  const parameters = Object.entries(given).filter(([, value]) => value !== null && value !== '');
  if (parameters.length === 0) return undefined;
  const added = Object.fromEntries(parameters);
  return {
    step: { ...step, query: mergedQuery(step.query, pages.query.reads, added) },
    key: stringifyExact(added),
  };
}

function mergedQuery(
  query: ValueTemplate | undefined,
  reads: ReadonlySet<string>,
  added: JsonObject,
): ValueTemplate {
  return {
    reads: new Set([...reads, ...(query?.reads ?? [])]),
    render: (scope) => {
      const own = query?.render(scope);
      return typeof own === 'object' && own !== null && !Array.isArray(own) ? { ...own, ...added } : added;
    },
  };
}
