// What expressions may read at each place of one tool: arguments, earlier answers, captures known by then.

import type { Names, Shape } from './expression-names.ts';

/** Captures by name: whether a value is sure to be there, and its type. */
export type Captured = ReadonlyMap<string, { certain: boolean; type: string; by: string }>;

export const task: Shape = {
  kind: 'members',
  members: {
    key: { type: 'string', certain: true },
    createdAt: { type: 'string', certain: true },
  },
  open: false,
  declare: 'a task has key and createdAt; its id is never shown to an upstream',
};

/** What drivers make of a reply. */
export const response: Shape = {
  kind: 'members',
  members: {
    status: { type: 'int', certain: true },
    headers: { type: 'map<string, dyn>', certain: true },
    body: { type: 'dyn', certain: true },
    cookies: { type: 'map<string, dyn>', certain: true },
    url: { type: 'string', certain: true },
    truncated: { type: 'bool', certain: true },
    bytes: { type: 'int', certain: false, fix: 'the upstream may not tell: read it as response.?bytes' },
  },
  open: false,
  declare: 'a reply has status, headers, body, cookies, url, truncated and bytes',
};

/** After an end nobody knows how far the job has come. */
export function uncertain(captured: Captured): Captured {
  return new Map([...captured].map(([name, capture]) => [name, { ...capture, certain: false }]));
}

/** Replies of earlier steps of one list, by the name of their step. */
export type Fetched = ReadonlyMap<string, { certain: boolean; list: boolean }>;

/** The root `fetched`; there is none before the first reply that can be read. */
export function fetchedNames(fetched: Fetched): Names {
  if (fetched.size === 0) return {};
  const shape: Shape = {
    kind: 'members',
    members: Object.fromEntries(
      [...fetched].map(([name, { certain, list }]) => [
        name,
        {
          type: list ? 'list' : 'map<string, dyn>',
          certain,
          fix: `its step may be left out: test has(fetched.${name}), or read fetched.?${name}`,
          ...(!list && { shape: response }),
        },
      ]),
    ),
    open: false,
    declare: 'name an earlier step of the same list so',
  };
  return { fetched: shape };
}

/** Variables of the file, all text. */
export function variables(names: readonly string[], list: string): Shape {
  return {
    kind: 'members',
    members: Object.fromEntries(names.map((name) => [name, { type: 'string', certain: true }])),
    open: false,
    declare: `list it under ${list}`,
  };
}

function jobShape(captured: Captured): Shape {
  return {
    kind: 'members',
    members: Object.fromEntries(
      [...captured].map(([name, { certain, type, by }]) => [
        name,
        {
          type,
          certain,
          fix: `it is captured by ${by}; test has(job.${name}) in when, or read job.?${name}.orValue(…)`,
        },
      ]),
    ),
    open: false,
    declare: 'capture it in an earlier step',
  };
}

/** Adds captures; a name that was certain stays so. */
export function withCaptures(
  captured: Captured,
  names: Iterable<{ name: string; type: string }>,
  how: { certain: boolean; by: string },
): Captured {
  const next = new Map(captured);
  for (const { name, type } of names) {
    const before = next.get(name);
    next.set(name, {
      certain: how.certain || before?.certain === true,
      type: before?.certain && before.type !== type ? 'dyn' : type,
      by: before?.by ?? how.by,
    });
  }
  return next;
}

/** The names of a place, with the captures known there. */
export function namesWith(base: Names, captured: Captured, more: Names = {}): Names {
  return { ...base, job: jobShape(captured), task, ...more };
}
