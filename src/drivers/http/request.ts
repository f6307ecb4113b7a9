// One request, complete and checked, out of an adapter's upstream, a step and the values at hand.

import type { Scope } from '../../config/expression.ts';
import { readsSecret } from '../../config/expression-names.ts';
import { bodyReads, renderBody } from './body.ts';
import type { HttpStep, HttpUpstream, ReadKind } from './compiled.ts';
import { additionsFor, headerReads, renderAdditions, renderHeaders } from './credentials.ts';
import { type Headers, setHeader } from './headers.ts';
import { encodePairs, joinQueries, type Pair, pairsOf, withoutPairs } from './query.ts';
import { RequestFault } from './request-fault.ts';
import type { SigV4Credentials } from './sigv4.ts';
import { parseBase, renderTarget, type Target } from './target.ts';

export interface BuiltRequest {
  method: HttpStep['method'];
  /** What is asked for, with all credentials in it. Never shown. */
  url: URL;
  /** What expressions see: without anything the adapter added. */
  shownUrl: string;
  headers: { [name: string]: string };
  body: Buffer | undefined;
  /** To be signed with these when it goes out. */
  sign: SigV4Credentials | undefined;
  /** On the upstream's own origin: what it says of limits holds for the upstream. */
  own: boolean;
  /** Credentials go there; elsewhere the request carries none. */
  trusted: boolean;
  /** The host was admitted by a wildcard only: its address must be public. */
  guarded: boolean;
}

/**
 * @param scope with `env` and `secrets` filled in.
 * @param ownHeaders what taskferry itself adds; they win over the step's.
 * @throws RequestFault, EvaluationFault
 */
export function buildRequest(
  upstream: HttpUpstream,
  step: HttpStep,
  scope: Scope,
  ownHeaders: { [name: string]: string } = {},
): BuiltRequest {
  const base = parseBase(upstream.baseUrl.render({ env: scope.env }));
  const target = renderTarget(step.target, base, upstream, scope);
  const { trusted } = target;
  if (!trusted) refuseSecretsElsewhere(step, target);

  const added = renderAdditions(additionsFor(upstream, step, target), scope);
  const body = step.body && renderBody(step.body, scope);
  const headers: Headers = new Map();
  setHeader(headers, 'accept', step.unzip === undefined ? accept[step.read] : '*/*');
  setHeader(headers, 'user-agent', 'taskferry');
  if (body !== undefined) setHeader(headers, 'content-type', body.contentType);
  if (trusted)
    for (const [name, value] of [...added.headers, ...added.auth.headers]) setHeader(headers, name, value);
  const ownSources = step.headers.filter((source) => trusted || !readsSecret(headerReads(source)));
  for (const [name, value] of renderHeaders(ownSources, scope)) setHeader(headers, name, value);
  for (const [name, value] of Object.entries(ownHeaders)) setHeader(headers, name, value);
  if (body?.fixedType) setHeader(headers, 'content-type', body.contentType);
  // A compressed reply could unfold to any size; whoever sends one anyway is decoded with a limit.
  setHeader(headers, 'accept-encoding', 'identity');

  const stepQuery = pairsOf(step.query?.render(scope), 'query');
  const { shown, sent } = assembleQuery(
    target.query,
    stepQuery,
    step,
    added.query,
    added.auth.query,
    trusted,
  );
  return {
    method: step.method,
    url: new URL(`${target.origin}${target.path}${sent === '' ? '' : `?${sent}`}`),
    shownUrl: `${target.origin}${target.path}${shown === '' ? '' : `?${shown}`}`,
    headers: Object.fromEntries(headers),
    body: body?.bytes,
    // A step that sends an Authorization of its own has replaced the upstream's.
    sign: trusted && !headers.has('authorization') ? added.auth.sign : undefined,
    own: target.admission === 'own',
    trusted,
    guarded: target.admission === 'wildcard',
  };
}

const accept: { [kind in ReadKind]: string } = {
  json: 'application/json, */*;q=0.5',
  jsonl: '*/*',
  csv: 'text/csv, */*;q=0.5',
  base64: '*/*',
  text: '*/*',
  none: '*/*',
};

function assembleQuery(
  targetQuery: string,
  stepQuery: readonly Pair[],
  step: HttpStep,
  upstreamQuery: readonly Pair[],
  authQuery: readonly Pair[],
  trusted: boolean,
): { shown: string; sent: string } {
  const credential = ([name, value]: Pair): boolean =>
    [...upstreamQuery, ...authQuery].some(([n, v]) => n === name && v === value);
  // A URL out of a reply may repeat what the adapter added to the request before; it must not travel on.
  const clean = withoutPairs(targetQuery, (name, value) => credential([name, value]));
  const shown = joinQueries(clean, step.query && readsSecret(step.query.reads) ? '' : encodePairs(stepQuery));
  if (!trusted) return { shown, sent: shown };

  const authNames = new Set(authQuery.map(([name]) => name));
  const target = withoutPairs(clean, (name) => authNames.has(name));
  const fromStep = stepQuery.filter(([name]) => !authNames.has(name));
  const taken = new Set([
    ...new URLSearchParams(target).keys(),
    ...fromStep.map(([name]) => name),
    ...authNames,
  ]);
  const fromUpstream = upstreamQuery.filter(([name]) => !taken.has(name));
  return { shown, sent: joinQueries(target, encodePairs([...fromStep, ...fromUpstream, ...authQuery])) };
}

/** Headers that read a secret are left out elsewhere; query and body can't be sent in part. */
function refuseSecretsElsewhere(step: HttpStep, target: Target): void {
  const reads = [...(step.query ? [step.query.reads] : []), ...(step.body ? bodyReads(step.body) : [])];
  if (reads.some(readsSecret)) {
    throw new RequestFault(
      `the step sends a secret in its query or body, but its URL points at ${target.origin}, which is not the upstream`,
    );
  }
}
