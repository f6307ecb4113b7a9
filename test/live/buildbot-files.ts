// The files of a Buildbot master for tests: its configuration, its build script, and a stub of the web package.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Ports {
  web: number;
  worker: number;
}

/** The second one can only be named by its id, as a space can't stand in Buildbot's paths. */
const builderNames = ['tests', 'other tests'];
export const workerName = 'worker1';
export const workerPassword = 'pass';

/**
 * Waits for some seconds, then exits as told. Ends by itself when the master's folder is removed, so that no build
 * outlives a test whatever became of its worker.
 */
const buildScript = `folder=$1 left=$(($2 * 5))
while [ "$left" -gt 0 ] && [ -d "$folder" ]; do sleep 0.2; left=$((left - 1)); done
exit "$3"
`;

/** Writes `master.cfg` and the build script into a master's folder. */
export function writeMaster(folder: string, ports: Ports): void {
  const script = join(folder, 'build.sh');
  writeFileSync(script, buildScript);
  writeFileSync(
    join(folder, 'master.cfg'),
    `from buildbot.plugins import schedulers, steps, util, worker

command = ['sh', ${JSON.stringify(script)}, ${JSON.stringify(folder)}, util.Property('secs'), util.Property('rc')]
names = ${JSON.stringify(builderNames)}
BuildmasterConfig = {
    'title': 'tests',
    'titleURL': 'http://127.0.0.1/',
    'buildbotURL': 'http://127.0.0.1:${ports.web}/',
    'buildbotNetUsageData': None,
    'db': {'db_url': 'sqlite:///state.sqlite'},
    'www': {'port': 'tcp:${ports.web}:interface=127.0.0.1'},
    'protocols': {'pb': {'port': 'tcp:${ports.worker}:interface=127.0.0.1'}},
    'workers': [worker.Worker('${workerName}', '${workerPassword}', max_builds=1)],
    'builders': [
        util.BuilderConfig(name=name, workernames=['${workerName}'], factory=util.BuildFactory([
            steps.ShellCommand(name='prepare', command=['true']),
            steps.ShellCommand(name='build', command=command),
        ])) for name in names
    ],
    'schedulers': [schedulers.ForceScheduler(name='force', builderNames=names, properties=[
        util.StringParameter(name='secs', default='0', regex='^[0-9]+$'),
        util.StringParameter(name='rc', default='0', regex='^[0-9]+$'),
    ])],
}
`,
  );
}

/**
 * A master serves its REST API only when the package of its web pages is installed, which Debian doesn't have. This
 * is one without pages. `folder` is to be put on PYTHONPATH.
 */
export function writeWebStub(folder: string): void {
  const files = {
    'stub_www/__init__.py':
      "from buildbot.www.plugin import Application\n\nep = Application(__name__, 'No pages')\n",
    'stub_www/VERSION': '1\n',
    'stub_www/static/index.html': '<html></html>\n',
    'stub_www-1.dist-info/METADATA': 'Metadata-Version: 2.1\nName: stub-www\nVersion: 1\n',
    'stub_www-1.dist-info/entry_points.txt': '[buildbot.www]\nbase = stub_www:ep\n',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}
