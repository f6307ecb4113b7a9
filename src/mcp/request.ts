// What one MCP request says about its sender: era, declared capabilities, caller.

import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  MissingRequiredClientCapabilityError,
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
  // The SDK's type of the envelope has no index signature for its own key constants.
  const envelope = context.mcpReq.envelope as { [key: string]: unknown } | undefined;
  return (envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as ClientCapabilities;
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
