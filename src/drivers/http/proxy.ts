// Which proxy, if any, a request goes through.

import { BlockList, isIP } from 'node:net';
import { bare, effectivePort } from './origins.ts';
import { RequestFault } from './request-fault.ts';

export type ProxyEnv = { readonly [name: string]: string | undefined };

/**
 * @param configured `upstream.proxy`; applies to everything. Without it HTTPS_PROXY or HTTP_PROXY (or their
 *   lower-case forms) apply, except to this machine and to what NO_PROXY names.
 * @throws RequestFault when the proxy is no http or https URL.
 */
export function proxyFor(url: URL, configured: string | undefined, env: ProxyEnv): URL | undefined {
  if (configured !== undefined) return parseProxy(configured, 'upstream.proxy');
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const text = env[name.toLowerCase()] || env[name];
  if (!text || isThisMachine(url) || isExempt(url, env.no_proxy || env.NO_PROXY || '')) return undefined;
  return parseProxy(text, name);
}

/** The value of `proxy-authorization`, when the proxy's URL names a user. */
export function proxyAuthorization(proxy: URL): string | undefined {
  if (proxy.username === '' && proxy.password === '') return undefined;
  const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

function parseProxy(text: string, name: string): URL {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    // The text itself may hold a password.
    throw new RequestFault(`${name} is not the URL of an http or https proxy`);
  }
  return url;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function isThisMachine(url: URL): boolean {
  const host = bare(url.hostname);
  return host === 'localhost' || inList(loopback, host);
}

/** NO_PROXY: names (with their subdomains), `.domain`, addresses, networks, each with a port if wanted, or `*`. */
function isExempt(url: URL, list: string): boolean {
  const host = bare(url.hostname);
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      const network = /^(.+)\/(\d+)$/.exec(entry);
      if (network?.[1] !== undefined) return inNetwork(host, network[1], Number(network[2]));
      const [, name = entry, port] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(entry) ?? [];
      if (port !== undefined && port !== effectivePort(url)) return false;
      const wanted = bare(name).replace(/^\*?\./, '');
      return host === wanted || (isIP(host) === 0 && host.endsWith(`.${wanted}`));
    });
}

function inNetwork(host: string, network: string, prefix: number): boolean {
  const family = isIP(network);
  if (family === 0 || prefix > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  list.addSubnet(network, prefix, family === 4 ? 'ipv4' : 'ipv6');
  return inList(list, host);
}

function inList(list: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && list.check(host, family === 4 ? 'ipv4' : 'ipv6');
}
