// The npm tarball: packed, installed in an empty folder, and run from there.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { tempDir } from './helpers/temp-dir.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

it('works when it is installed from the tarball: check runs, and serve finds its worker', async () => {
  const folder = tempDir();
  const npm = (cwd: string, ...args: string[]): string =>
    execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: 'pipe' });
  const packed = JSON.parse(npm(root, 'pack', '--json', '--pack-destination', folder));
  const [{ filename, files }] = Array.isArray(packed) ? packed : Object.values(packed);
  const names = files.map(({ path }: { path: string }) => path);
  expect(names).toContain('dist/stores/sqlite/worker.js');
  expect(names.filter((name: string) => /^(src|test)\/|\.ts$/.test(name) && !name.endsWith('.d.ts'))).toEqual(
    [],
  );

  const app = join(folder, 'app');
  mkdirSync(app);
  writeFileSync(join(app, 'package.json'), '{"private": true}');
  npm(
    app,
    'install',
    '--prefer-offline',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    join(folder, filename),
  );
  writeFileSync(
    join(app, 'a.yaml'),
    `version: 1
name: sample
upstream: { driver: http, baseUrl: "http://127.0.0.1:9" }
tools:
  ping:
    description: Asks.
    input: { type: object, properties: {} }
    call: { request: GET /ping }
`,
  );
  const bin = join(app, 'node_modules/taskferry/bin/taskferry.js');
  const check = execFileSync(process.execPath, [bin, 'check', 'a.yaml'], { cwd: app, encoding: 'utf8' });
  expect(check).toBe('a.yaml: sample, tool ping\n');

  const serve = spawn(process.execPath, [bin, 'serve', '--adapter', './a.yaml', '--port', '0'], {
    cwd: app,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void serve.kill('SIGKILL'));
  let line = '';
  for await (line of createInterface({ input: serve.stderr })) break;
  expect(line).toMatch(/ready at .* with tool ping$/);
  serve.kill('SIGTERM');
  const [code] = await once(serve, 'exit');
  expect(code).toBe(0);
}, 180_000);
