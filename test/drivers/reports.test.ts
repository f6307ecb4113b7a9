// What an adapter's exchanges tell the log and the metrics, and which secrets are kept out of both.

import { expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { createHttpDriver } from '../../src/drivers/http/driver.ts';
import { createUpstreams } from '../../src/drivers/upstreams.ts';
import { createLog } from '../../src/observability/log.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { eventually } from '../helpers/eventually.ts';
import { createFakeClock } from '../helpers/fake-clock.ts';
import { json } from '../helpers/http-server.ts';
import { recordedLog } from '../helpers/recorded-log.ts';
import { adapted, adapterText, always, load, viewWith, withToken } from './adapted.ts';

/** A second tool, which reads the status as the first does. */
const other = `  other:
    description: Runs another job.
    create:
      request: POST /others
      json: { key: "\${{ task.key }}" }
      capture: { id: response.body.id }
    status:
      request: GET /others/\${{ job.id }}
      state: { of: response.body.state.word, working: [running], succeeded: [done] }`;
const status = `    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state.word, working: [running], succeeded: [done] }`;

it('an expression that fails is logged once for each tool, with the place that it stands at', async () => {
  const { log, lines } = recordedLog();
  const { upstreams, poll } = await adapted({ status, tool: other }, { handler: always(200, {}), log });
  await poll();
  await poll();
  await upstreams.served('jobs', 'other').poll(viewWith());
  expect(lines.map(({ adapter, tool, at }) => ({ adapter, tool, at }))).toEqual([
    { adapter: 'jobs', tool: 'run', at: 'status: state.of' },
    { adapter: 'jobs', tool: 'other', at: 'status: state.of' },
  ]);
});

it('the secrets of a stored adapter that is served no longer are redacted', async () => {
  const { digest } = load(adapterText(withToken));
  const upstreams = createUpstreams({
    served: [],
    drivers: [createHttpDriver({ env: {} }) as Driver],
    loadText: async () => adapterText(withToken),
    environment: { UPSTREAM: 'http://127.0.0.1:1', TOKEN: 'obviously-fake-token' },
    clock: systemClock,
    log: createLog('silent', (line) => line),
    metrics: createMetrics(),
  });
  expect(await upstreams.of({ adapter: 'jobs', digest, tool: 'run' })).toHaveProperty('upstream');
  expect(upstreams.redact('the reply says obviously-fake-token')).toBe('the reply says [redacted]');
  await upstreams.close();
});

it('the time of an upstream call is that of the exchange, without the wait for the budget', async () => {
  const clock = createFakeClock();
  const gate = Promise.withResolvers<void>();
  const { poll, server, metrics } = await adapted(
    { top: 'limits: { concurrency: 1 }' },
    {
      clock,
      handler: async (_request, response) => {
        await gate.promise;
        json(response, 200, { state: 'running', message: '' });
      },
    },
  );
  const polls = [poll(), poll()];
  await eventually(
    () => server.seen.length,
    (seen) => seen === 1,
  );
  await clock.advance(20_000);
  gate.resolve();
  await Promise.all(polls);
  const text = await metrics();
  expect(text).toContain('taskferry_upstream_call_seconds_sum{adapter="jobs",result="reply"} 20\n');
  expect(text).toContain('taskferry_upstream_call_seconds_count{adapter="jobs",result="reply"} 2\n');
});

it('a request that could not be made is no upstream call', async () => {
  const { poll, metrics } = await adapted({});
  expect((await poll({ job: {} })).observation.kind).toBe('rejected');
  expect(await metrics()).not.toContain('taskferry_upstream_call_seconds_count{');
});
