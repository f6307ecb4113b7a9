// What one MCP request says about its sender: era, declared capabilities, caller.

import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  MissingRequiredClientCapabilityError,
  type ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server';

/** The Tasks extension (SEP-2663). */
export const tasksExtension = 'io.modelcontextprotocol/tasks';

/** Everybody is one caller until authentication exists; part of every task's key all the same. */
export const localCaller = 'local';

export type RequestContext = Pick<ServerContext, 'mcpReq'>;

/** A 2025-era request carries no envelope, so nothing is known of its client's capabilities. */
export function isLegacy(context: RequestContext): boolean {
  return context.mcpReq.envelope === undefined;
}

/** Capabilities count for the request that carries them and for no other. */
export function capabilitiesOf(context: RequestContext): ClientCapabilities {
  return capabilitiesIn(context.mcpReq.envelope);
}

/** @param meta the `_meta` of a request, or the SDK's envelope of it, whose type has no index signature. */
export function capabilitiesIn(meta: object | undefined): ClientCapabilities {
  const declared = (meta as { [key: string]: unknown } | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
  return (declared ?? {}) as ClientCapabilities;
}

/** Only the nested form declares the extension; older forms (`capabilities.tasks`, `params.task`) don't. */
export function declaresTasks(capabilities: ClientCapabilities): boolean {
  return capabilities.extensions?.[tasksExtension] !== undefined;
}

export function declaresElicitation(capabilities: ClientCapabilities): boolean {
  return capabilities.elicitation !== undefined;
}

/** -32021 naming the extension. */
export function tasksRequired(): MissingRequiredClientCapabilityError {
  return new MissingRequiredClientCapabilityError({
    requiredCapabilities: { extensions: { [tasksExtension]: {} } },
  });
}

/** -32021 naming elicitation. */
export function elicitationRequired(): MissingRequiredClientCapabilityError {
  return new MissingRequiredClientCapabilityError({ requiredCapabilities: { elicitation: {} } });
}

/**
 * The body of a JSON-RPC error that is answered outside of the SDK.
 * @param more.id of the request; null, the default: it can't be told.
 */
export function rpcError(
  code: ProtocolErrorCode,
  message: string,
  { id = null, data }: { id?: string | number | null; data?: unknown } = {},
): object {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } };
}
