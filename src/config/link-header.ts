// The Link header (RFC 8288): the target of one relation.

/** Longest header that is looked at. */
const longest = 64 * 1024;

/**
 * The first target of the relation `rel`, as it is written there, which may be relative; undefined when there is none.
 * Relation types are compared without regard to case; links with an `anchor` speak of something else and are passed over.
 */
export function linkTarget(header: string, rel: string): string | undefined {
  const wanted = rel.trim().toLowerCase();
  let rest = header.slice(0, longest);
  for (;;) {
    const target = /^[\s,]*<([^<>]*)>/.exec(rest);
    if (target === null) return undefined;
    rest = rest.slice(target[0].length);
    const parameters = new Map<string, string>();
    for (;;) {
      const parameter = /^\s*;\s*([^\s=;,"<>]*)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"<>]*)))?/s.exec(rest);
      if (parameter === null) break;
      const [whole, name = '', quoted, plain] = parameter;
      const value = quoted === undefined ? (plain ?? '') : quoted.replaceAll(/\\(.)/gs, '$1');
      // Of a repeated parameter the first one counts.
      if (!parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), value);
      rest = rest.slice(whole.length);
    }
    const relations = (parameters.get('rel') ?? '').toLowerCase().split(/\s+/);
    if (relations.includes(wanted) && !parameters.has('anchor')) return target[1];
  }
}
