// Which hosts a URL that came out of a reply may point at.

import { isIP } from 'node:net';

/**
 * own: the upstream itself. named: written in `allowHosts` as it is, may be a private address.
 * wildcard: admitted by `*.domain` only, so its address is checked at every connect.
 */
export type Admission = 'own' | 'named' | 'wildcard';

/**
 * An entry without a port means the scheme's own port (443, 80). A reply can't move an https upstream to plain
 * http, unless the entry names the port.
 * @returns undefined when the host is not admitted.
 */
export function admit(url: URL, base: URL, allowHosts: readonly string[]): Admission | undefined {
  if (url.origin === base.origin) return 'own';
  const entries = allowHosts.map(parseEntry);
  if (entries.some((entry) => !entry.wildcard && entry.host === host(url) && portFits(entry, url, base))) {
    return 'named';
  }
  const byWildcard = entries.some(
    (entry) => entry.wildcard && host(url).endsWith(entry.host) && portFits(entry, url, base),
  );
  // The parser lets a name with an empty label pass (`.domain`); an address is not below any domain.
  const name = isIP(bare(host(url))) === 0 && !/^\.|\.\./.test(host(url));
  return byWildcard && name ? 'wildcard' : undefined;
}

/** `host:port` with the port always spelt out, for messages. */
export function hostAndPort(url: URL): string {
  return `${url.hostname}:${effectivePort(url)}`;
}

export function effectivePort(url: URL): string {
  return url.port !== '' ? url.port : url.protocol === 'https:' ? '443' : '80';
}

/** A host name or address without the brackets of IPv6. */
export function bare(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

interface Entry {
  /** For a wildcard: `.domain`. */
  host: string;
  port: string | undefined;
  wildcard: boolean;
}

function parseEntry(text: string): Entry {
  const [, name = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(text.trim().toLowerCase()) ?? [];
  const wildcard = name.startsWith('*.');
  return { host: (wildcard ? name.slice(1) : name).replace(/\.$/, ''), port, wildcard };
}

function portFits(entry: Entry, url: URL, base: URL): boolean {
  if (entry.port !== undefined) return entry.port === effectivePort(url);
  return url.port === '' && (url.protocol === 'https:' || base.protocol === 'http:');
}

function host(url: URL): string {
  return url.hostname.replace(/\.$/, '');
}
