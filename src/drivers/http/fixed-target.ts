// A target that the driver itself found in a reply: it passes through the same checks as one that an adapter names.

import type { HttpTarget } from './compiled.ts';

/** @param source names the URL in messages: `the redirect`. */
export function fixedTarget(url: string, source: string): HttpTarget {
  const part = { source, type: 'string', reads: new Set<string>(), evaluate: () => url };
  return { kind: 'url', url: { source, parts: [part], reads: part.reads, render: () => url } };
}
