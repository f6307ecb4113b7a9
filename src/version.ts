// The version of this package, from package.json, which stands beside src and dist alike.

import { readFileSync } from 'node:fs';

export const version: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version;
