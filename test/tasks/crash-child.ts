// The process that is killed in the crash tests: starts one job and dies by SIGKILL at the point it is told.
//
//   node crash-child.ts STORE ADAPTER POINT       prints the task's id as soon as it has one

import { readFileSync, writeSync } from 'node:fs';
import { systemClock } from '../../src/clock.ts';
import { loadAdapter } from '../../src/config/load.ts';
import { adapterVariables } from '../../src/config/variables.ts';
import { createUpstreams } from '../../src/drivers/upstreams.ts';
import { createLog } from '../../src/observability/log.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { drivers, formats } from '../../src/server.ts';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import type { Store } from '../../src/stores/store.ts';
import { createChanges } from '../../src/tasks/changes.ts';
import { createTaskService } from '../../src/tasks/service.ts';

const [storePath = '', adapterFile = '', point = ''] = process.argv.slice(2);

function dieAt(here: string): void {
  if (here === point) process.kill(process.pid, 'SIGKILL');
}

/** The real store, with the crash points around the writes that make and link a task. */
function crashing(store: Store): Store {
  return {
    ...store,
    async insert(entry) {
      writeSync(1, `${entry.task.id}\n`);
      dieAt('before intent');
      const outcome = await store.insert(entry);
      dieAt('after intent');
      return outcome;
    },
    async save(change) {
      const links = change.task.stage === 'following' && change.task.version === 2;
      if (links) dieAt('after response');
      const saved = await store.save(change);
      if (links) dieAt('after link');
      return saved;
    },
  };
}

const store = crashing(await openSqliteStore({ path: storePath }));
const { adapter } = loadAdapter(readFileSync(adapterFile, 'utf8'), { file: adapterFile, formats });
if (adapter === undefined) throw new Error('the adapter of the crash test does not load');
const metrics = createMetrics();
const log = createLog('silent', (line) => line);
const environment = process.env;
const upstreams = createUpstreams({
  served: [{ name: adapter.name, adapter, env: {}, variables: adapterVariables(adapter, { environment }) }],
  drivers,
  loadText: (digest) => store.adapterText(digest),
  environment,
  clock: systemClock,
  log,
  metrics,
});
const tasks = createTaskService({
  store,
  clock: systemClock,
  changes: createChanges(),
  upstreams,
  render: () => '{}',
  wake: () => {},
  log,
  metrics,
  random: Math.random,
});
await tasks.start({
  caller: 'local',
  upstream: upstreams.served(adapter.name, 'run'),
  adapterText: adapter.text,
  args: {},
  confirm: {},
  startKey: undefined,
});
dieAt('after answer');
// Only a crash point that does not exist, or the upstream that kills this process, gets here.
process.exit(3);
