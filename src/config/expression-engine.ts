// The CEL engine as taskferry sets it up: its bounds, and the functions that are added to CEL.

import { Environment, Optional } from '@marcbachmann/cel-js';
import { engineMap } from './engine-data.ts';
import { parseJson, parseOptionalJson, toJson } from './expression-json.ts';
import { linkTarget } from './link-header.ts';

/** Bounds of one expression; with the loop rules of the lint they bound what an evaluation can cost. */
const engineOptions = {
  enableOptionalTypes: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 500, maxDepth: 32, maxListElements: 100, maxMapEntries: 100, maxCallArguments: 8 },
};

/**
 * A fresh engine. The URL helpers take a text or an optional text; an empty optional stays empty.
 * `anyName`: names need no declaration and have any type.
 */
export function newEngine({ anyName = false }: { anyName?: boolean } = {}): Environment {
  return new Environment({ ...engineOptions, unlistedVariablesAreDyn: anyName })
    .registerFunction('lastSegment(string): string', lastSegment)
    .registerFunction('lastSegment(optional): optional<string>', optionally(lastSegment))
    .registerFunction('resolveUrl(string): string', resolveUrl)
    .registerFunction('resolveUrl(optional): optional<string>', optionally(resolveUrl))
    .registerFunction('linkHeader(string, string): optional<string>', linkHeader)
    .registerFunction('linkHeader(optional, string): optional<string>', (header: Optional, rel: string) => {
      const value: unknown = header.hasValue() ? header.value() : '';
      if (typeof value !== 'string') throw new Error('a header must be text');
      return linkHeader(value, rel);
    })
    .registerFunction('merge(map, map): map', merge)
    .registerFunction('fromEntries(list): map', fromEntries)
    .registerFunction('parseJson(string): dyn', parseJson)
    .registerFunction('parseJson(optional): optional<dyn>', parseOptionalJson)
    .registerFunction('toJson(dyn): string', toJson);
}

// Evaluation is synchronous, so the URL that `resolveUrl` works against can be kept here while it runs.
let base: string | undefined;

/** Runs an evaluation in which `resolveUrl` resolves against `url`. */
export function withBaseUrl<T>(url: string | undefined, run: () => T): T {
  const outer = base;
  base = url;
  try {
    return run();
  } finally {
    base = outer;
  }
}

function optionally(run: (text: string) => string): (value: Optional) => Optional<string> {
  return (value) => {
    if (!value.hasValue()) return Optional.none();
    const text = value.value();
    if (typeof text !== 'string') throw new Error('a URL must be text');
    return Optional.of(run(text));
  };
}

/** The last part of a URL's path that is not empty, percent-decoded once. */
function lastSegment(url: string): string {
  const path = url.replace(/[?#].*$/s, '').replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
  const segment = path.split('/').findLast((part) => part !== '');
  if (segment === undefined) throw new Error('the URL has no path segment');
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The target of a relation in a Link header; empty when there is none. */
function linkHeader(header: string, rel: string): Optional<string> {
  const target = linkTarget(header, rel);
  return target === undefined ? Optional.none() : Optional.of(target);
}

/** An absolute URL, resolved as a browser resolves a link on the page that was asked for. */
function resolveUrl(reference: string): string {
  if (base === undefined) throw new Error('there is no request URL to resolve against');
  const url = URL.parse(reference, base);
  if (url === null) throw new Error('not a URL');
  return url.href;
}

/** Both maps in one; where a key is in both, the second one's value counts. */
function merge(first: object, second: object): object {
  return engineMap([...entriesOf(first), ...entriesOf(second)]);
}

/** A map of a list of `{key, value}`; of equal keys the last one counts. */
function fromEntries(entries: readonly unknown[]): object {
  return engineMap(
    entries.map((entry) => {
      const { key, value } = Object.fromEntries(entriesOf(entry ?? {})) as { key?: unknown; value?: unknown };
      if (typeof key !== 'string')
        throw new Error('fromEntries() wants a list of {key, value} with text as key');
      return [key, value];
    }),
  );
}

function entriesOf(map: object): Iterable<readonly [string, unknown]> {
  return map instanceof Map ? map : Object.entries(map);
}
