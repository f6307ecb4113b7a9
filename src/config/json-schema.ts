// JSON Schemas of the adapter and settings files, for editors. `npm run schema` (scripts/schema.ts) writes them.

import { z } from 'zod';
import { adapterSchema, type DriverShape } from './adapter-schema.ts';
import { settingsSchema } from './settings-schema.ts';

/** File name in `config/` and its text, in the order they are written. */
export function editorSchemas(drivers: readonly DriverShape[]): { file: string; text: string }[] {
  const schemas = drivers.map(adapterSchema);
  const [only] = schemas;
  const adapter = schemas.length === 1 && only ? only : z.union(schemas);
  return [
    { file: 'adapter.schema.json', text: schemaText(adapter, 'taskferry adapter, version 1') },
    { file: 'settings.schema.json', text: schemaText(settingsSchema, 'taskferry settings, version 1') },
  ];
}

function schemaText(schema: z.ZodType, title: string): string {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: 'input', reused: 'ref' });
  return `${JSON.stringify({ $schema, title, ...rest }, null, 2)}\n`;
}
