// JSON Schemas of the adapter and settings files, for editors. Run by `npm run schema`, which writes them to config/.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

if (import.meta.main) {
  // Only the script knows the drivers: as a module this file takes them as an argument.
  const { httpFormat } = await import('../drivers/http/format.ts');
  for (const { file, text } of editorSchemas([httpFormat]))
    writeFileSync(join(import.meta.dirname, '../../config', file), text);
}
