// A process that writes is killed again and again: whatever it had acknowledged is there.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import { tempDir } from '../helpers/temp-dir.ts';

const writerFile = new URL('./sqlite-crash-writer.ts', import.meta.url);
const kills = 8;

/** The last version that the writer acknowledged of each task. */
type Acknowledged = Map<string, number>;

/** Runs the writer until it has acknowledged `enough` more writes, then kills it without warning. */
async function writeAndKill(path: string, enough: number, acknowledged: Acknowledged): Promise<number> {
  const child: ChildProcess = spawn(process.execPath, [writerFile.pathname, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = new Promise<NodeJS.Signals | null>((resolve) =>
    child.once('exit', (_code, signal) => resolve(signal)),
  );
  if (child.stdout === null) throw new Error('the writer has no output');
  let lines = 0;
  // The pipe still holds what was written before the kill: those writes were acknowledged too.
  for await (const line of createInterface({ input: child.stdout })) {
    const [id, version] = line.split(' ');
    // The last line may be cut off by the kill.
    if (id?.length !== 36 || version === undefined || version === '') continue;
    acknowledged.set(id, Math.max(Number(version), acknowledged.get(id) ?? 0));
    if (++lines === enough) child.kill('SIGKILL');
  }
  expect(await exited).toBe('SIGKILL');
  return lines;
}

it(`keeps every acknowledged write over ${kills} kills`, { timeout: 60_000 }, async () => {
  const path = join(tempDir(), 'tasks.db');
  const acknowledged: Acknowledged = new Map();
  let writes = 0;
  for (let kill = 0; kill < kills; kill++) {
    // Different moments of a round each time.
    writes += await writeAndKill(path, 50 + kill * 53, acknowledged);
  }
  expect(writes).toBeGreaterThan(kills * 50);

  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  for (const [id, version] of acknowledged) {
    const stored = await store.get({ caller: 'local', id });
    // A write whose acknowledgement was not read any more may have come after.
    expect(stored?.task.version, id).toBeGreaterThanOrEqual(version);
    expect(stored?.task.message).toBe(`version ${stored?.task.version}`);
    expect(stored?.schedule).toBeDefined();
  }
  const counted = (await store.counts()).reduce((sum, { count }) => sum + count, 0);
  expect(counted).toBeGreaterThanOrEqual(acknowledged.size);
});
