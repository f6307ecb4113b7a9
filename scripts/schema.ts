// `npm run schema`: writes the JSON Schemas for editors to config/.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { editorSchemas } from '../src/config/json-schema.ts';
import { formats } from '../src/server.ts';

for (const { file, text } of editorSchemas(formats)) {
  writeFileSync(join(import.meta.dirname, '../config', file), text);
  console.log(`config/${file}`);
}
