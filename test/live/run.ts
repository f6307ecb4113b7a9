// `npm run test:live`: installs the real systems that the live tests need where it may (Debian, as root), else says
// what to install; then runs the tests.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Commands that must exist, and the Debian packages that bring them. */
const needed = [
  { command: 'buildbot', package: 'buildbot' },
  { command: 'buildbot-worker', package: 'buildbot-worker' },
];
const installLimitMs = 300_000;
const testLimitMs = 300_000;

/** What `command --version` says in its first line; undefined when there is no such command. */
function versionOf(command: string): string | undefined {
  const { status, stdout } = spawnSync(command, ['--version'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim().split('\n')[0] : undefined;
}

function missing(): string[] {
  return needed.filter(({ command }) => versionOf(command) === undefined).map((entry) => entry.package);
}

function aptGet(...args: string[]): boolean {
  const { status } = spawnSync('apt-get', args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    timeout: installLimitMs,
  });
  return status === 0;
}

function install(packages: string[]): void {
  console.log(`installing ${packages.join(' ')}`);
  const args = ['install', '-y', '-q', '--no-install-recommends', ...packages];
  // The package lists of a fresh machine may be empty or old.
  if (!aptGet(...args)) void (aptGet('update', '-q') && aptGet(...args));
}

const mayInstall = existsSync('/etc/debian_version') && process.getuid?.() === 0;
if (missing().length > 0 && mayInstall) install(missing());
const still = missing();
if (still.length > 0) {
  console.error(`The live tests need ${still.join(' and ')}. On Debian: apt-get install ${still.join(' ')}`);
  process.exit(1);
}

for (const { command } of needed) console.log(`${command}: ${versionOf(command)}`);
const root = fileURLToPath(new URL('../../', import.meta.url));
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.live.config.ts'],
  { cwd: root, stdio: 'inherit', timeout: testLimitMs },
);
process.exitCode = status ?? 1;
