// `npm run build`: makes dist/ for the npm package, since Node does not strip types below node_modules.

import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
rmSync(join(root, 'dist'), { recursive: true, force: true });
const { status } = spawnSync(
  process.execPath,
  [join(root, 'node_modules/typescript/bin/tsc'), '--project', join(root, 'tsconfig.build.json')],
  { stdio: 'inherit' },
);
process.exitCode = status ?? 1;
