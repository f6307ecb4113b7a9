// `npm run conformance`: the official MCP conformance suite against taskferry with the fixture adapters.
// Fails on a failed check that is not expected, on an expected failure that passes, on a scenario that was skipped
// or ran fewer checks than recorded. The last line is `N passed, N failed`.

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { startTaskferry } from '../helpers/start-taskferry.ts';
import { startFixtureService } from './fixture-service.ts';
import { type Scenario, scenarios } from './scenarios.ts';

interface Check {
  id: string;
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  errorMessage?: string;
}

interface ExpectedFailure {
  scenario: string;
  check: string;
  reason: string;
}

/** A scenario takes seconds; one that hangs must not hang the run. */
const scenarioLimitMs = 90_000;

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

function runScenario(url: string, scenario: Scenario): Promise<Check[]> {
  const output = mkdtempSync(join(tmpdir(), 'conformance-'));
  const args = [
    here('../../node_modules/@modelcontextprotocol/conformance/dist/index.js'),
    'server',
    ...['--url', url, '--scenario', scenario.name, '-o', output],
    ...(scenario.specVersion === undefined ? [] : ['--spec-version', scenario.specVersion]),
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: 'ignore', timeout: scenarioLimitMs });
    child.once('error', reject);
    child.once('exit', () => {
      const [folder] = readdirSync(output);
      const checks =
        folder === undefined ? [] : JSON.parse(readFileSync(join(output, folder, 'checks.json'), 'utf8'));
      rmSync(output, { recursive: true, force: true });
      resolve(checks as Check[]);
    });
  });
}

/** Lines about one scenario, and its counts; every fault is one failed check more. */
function judge(
  scenario: Scenario,
  checks: Check[],
  expected: ExpectedFailure[],
): { passed: number; faults: string[]; notes: string[] } {
  const own = expected.filter((entry) => entry.scenario === scenario.name);
  const isExpected = (check: Check): boolean => own.some((entry) => entry.check === check.id);
  const failures = checks.filter(({ status }) => status === 'FAILURE');
  const passed = checks.filter(({ status }) => status === 'SUCCESS').length;
  const faults = failures
    .filter((check) => !isExpected(check))
    .map(({ id, errorMessage }) => `${id}: ${errorMessage}`);
  for (const entry of own) {
    if (!failures.some(({ id }) => id === entry.check))
      faults.push(`${entry.check} is expected to fail, but did not`);
  }
  const ran = passed + failures.length;
  if (ran < scenario.checks) faults.push(`${ran} checks ran, ${scenario.checks} were recorded`);
  if (ran === 0 && scenario.skippedBySuite !== true) faults.push('the scenario was skipped');
  const notes = [
    ...checks
      .filter(({ status }) => status === 'WARNING')
      .map(({ id, errorMessage }) => `warning ${id}: ${errorMessage}`),
    ...own.map(({ check, reason }) => `expected failure ${check}: ${reason}`),
    ...(scenario.skippedBySuite ? ['skipped by the suite itself'] : []),
  ];
  return { passed, faults, notes };
}

const expected = parse(readFileSync(here('expected-failures.yaml'), 'utf8')) as ExpectedFailure[];
const fixture = await startFixtureService();
const server = await startTaskferry({
  adapters: [here('conformance.yaml')],
  environment: { FIXTURE_URL: fixture.url },
});
let passed = 0;
let failed = 0;
try {
  for (const scenario of scenarios) {
    const verdict = judge(scenario, await runScenario(server.url, scenario), expected);
    passed += verdict.passed;
    failed += verdict.faults.length;
    const title =
      scenario.specVersion === undefined ? scenario.name : `${scenario.name} (${scenario.specVersion})`;
    console.log(`${verdict.faults.length === 0 ? 'ok  ' : 'FAIL'} ${title}: ${verdict.passed} passed`);
    for (const line of [...verdict.faults, ...verdict.notes]) console.log(`       ${line}`);
  }
} finally {
  await server.close();
  await fixture.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
