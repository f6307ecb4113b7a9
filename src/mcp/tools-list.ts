// tools/list: depends on the catalog and on what this very request declares, never on the connection.

import type { ServerContext } from '@modelcontextprotocol/server';
import type { Catalog } from './catalog.ts';
import { capabilitiesOf, declaresTasks } from './request.ts';

export function listTools(catalog: Catalog, context: ServerContext): { tools: object[] } {
  const tasks = declaresTasks(capabilitiesOf(context));
  return {
    tools: catalog.tools.map(({ name, tool }) => ({
      name,
      ...(tool.title !== undefined && { title: tool.title }),
      description: tool.description,
      inputSchema: tool.input,
      // A client without tasks may get "still running" as a plain text answer, which official clients refuse from
      // a tool with an output schema.
      ...(tool.output !== undefined && (tasks || tool.kind === 'call') && { outputSchema: tool.output }),
      ...(tool.annotations !== undefined && { annotations: tool.annotations }),
    })),
  };
}
