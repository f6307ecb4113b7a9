// A built request as it goes out: by which route, through which proxy, with which signature.

import type { Clock } from '../../clock.ts';
import type { WireRequest } from './exchange.ts';
import type { Prepared } from './plan.ts';
import { proxyAuthorization } from './proxy.ts';
import type { BuiltRequest } from './request.ts';
import { signatureHeaders } from './sigv4.ts';

export function onTheWire(request: BuiltRequest, proxy: URL | undefined): Pick<Prepared, 'route' | 'wire'> {
  const { url, method, headers, body, guarded } = request;
  const peer = request.own ? 'own' : request.trusted ? 'trusted' : 'other';
  const path = url.pathname + url.search;
  // Plain http goes to a plain proxy as a request for the absolute URL: many proxies tunnel to port 443 only.
  // What must be checked for a private address is tunnelled all the same, so that the check is in one place.
  if (proxy?.protocol === 'http:' && url.protocol === 'http:' && !guarded) {
    const authorization = proxyAuthorization(proxy);
    return {
      route: { origin: proxy.origin, guarded: false, tunnel: undefined, peer: 'other' },
      wire: {
        origin: proxy.origin,
        path: url.origin + path,
        method,
        headers: {
          ...headers,
          host: url.host,
          ...(authorization !== undefined && { 'proxy-authorization': authorization }),
        },
        body,
      },
    };
  }
  return {
    route: { origin: url.origin, guarded, tunnel: proxy, peer },
    wire: { origin: url.origin, path, method, headers, body },
  };
}

/** Signed at the last moment: a signature holds for minutes, and a request may wait longer for its place. */
export async function signedWire({ request, wire }: Prepared, clock: Clock): Promise<WireRequest> {
  if (request.sign === undefined) return wire;
  const added = await signatureHeaders(request, request.sign, clock.now());
  return { ...wire, headers: { ...wire.headers, ...added } };
}
