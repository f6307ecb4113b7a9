// Compiling `pages` of a step: how it goes from one page of a list to the next.

import type { Compiler } from '../../config/driver-format.ts';
import type { Names } from '../../config/expression-names.ts';
import type { Json } from '../../exact-json.ts';
import { compileMap } from './compile-map.ts';
import type { HttpStep } from './compiled.ts';
import { defaultPages, mostPages, type Pages } from './pages.ts';
import type { RawStep } from './shape.ts';

/** What `query` and `while` may read beside the reply: of the page that would be asked for next. */
const names: Names = {
  page: {
    kind: 'members',
    members: {
      number: { type: 'int', certain: true },
      offset: { type: 'int', certain: true },
    },
    open: false,
    declare: 'a page has number (from 1) and offset (items so far)',
  },
};

export function compilePages(
  raw: RawStep,
  step: Pick<HttpStep, 'method' | 'target' | 'read'>,
  compiler: Compiler,
): Pages | undefined {
  const { pages } = raw;
  if (pages === undefined) return undefined;
  if (step.method !== 'GET') compiler.problem(['pages'], 'only a GET is asked for page after page');
  if (step.read !== 'json' && step.read !== 'jsonl' && step.read !== 'csv')
    compiler.problem(['pages'], `a page is a list, and read is ${step.read}`);
  if (raw.keep !== undefined || raw.unzip !== undefined)
    compiler.problem(['pages'], `can't stand beside ${raw.keep === undefined ? 'unzip' : 'keep'}`);
  const reply = compiler.afterReply();
  const counted = compiler.afterReply(names);
  const compiled: Pages = {
    items: reply.expression(['pages', 'items'], pages.items, 'list'),
    next: pages.next === undefined ? undefined : reply.expression(['pages', 'next'], pages.next),
    query: compileMap(pages.query, ['pages', 'query'], counted),
    more: pages.while === undefined ? undefined : counted.expression(['pages', 'while'], pages.while, 'bool'),
    max: pages.max ?? defaultPages,
  };
  if ((pages.next === undefined) === (pages.query === undefined))
    compiler.problem(
      ['pages'],
      'must hold exactly one of next, query',
      'next is a URL, query a token or a count',
    );
  // The text and not what was compiled: a name that is wrong is told already.
  if (compiled.query && !/\$\{\{[^}]*\b(response|page)\b/.test(JSON.stringify(pages.query)))
    compiler.problem(
      ['pages', 'query'],
      'is the same for every page',
      'read a token of the response, page.number or page.offset',
    );
  checkTwice(raw, step, pages.query, compiler);
  if (!Number.isInteger(compiled.max) || compiled.max < 1 || compiled.max > mostPages)
    compiler.problem(['pages', 'max'], `must be a whole number from 1 to ${mostPages}`);
  return compiled;
}

/** A parameter of the target can't be replaced, and would be sent twice. */
function checkTwice(
  raw: RawStep,
  { target }: Pick<HttpStep, 'target'>,
  query: unknown,
  compiler: Compiler,
): void {
  if (target.kind !== 'path' || typeof query !== 'object' || query === null) return;
  const [, fixed = ''] = /\?(.*)$/s.exec(raw.request) ?? [];
  const there = new Set(new URLSearchParams(fixed).keys());
  for (const name of Object.keys(query as { [name: string]: Json }))
    if (there.has(name))
      compiler.problem(['pages', 'query', name], 'is in the target already', 'move it to query');
}
