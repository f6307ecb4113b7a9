// Prometheus metrics, served on /metrics. Labels never hold task ids or upstream text.

import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface Metrics {
  registry: Registry;
  taskCreated(adapter: string): void;
  taskEnded(adapter: string, outcome: string): void;
  /** A status word that no rule of the adapter knows. */
  unknownStatus(adapter: string): void;
  /** A state rule, message or capture that could not be evaluated on a reply. */
  expressionFailed(adapter: string): void;
  upstreamCall(adapter: string, result: 'reply' | 'failed', seconds: number): void;
  streams(change: 1 | -1): void;
  /** Called at each scrape. */
  countTasks(read: () => Promise<{ adapter: string; stage: string; count: number }[]>): void;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const created = new Counter({
    name: 'taskferry_tasks_created_total',
    help: 'Tasks whose intent was stored.',
    labelNames: ['adapter'],
    registers,
  });
  const ended = new Counter({
    name: 'taskferry_tasks_ended_total',
    help: 'Tasks that reached a terminal state, by outcome.',
    labelNames: ['adapter', 'outcome'],
    registers,
  });
  const unknown = new Counter({
    name: 'taskferry_unknown_status_total',
    help: 'Polls whose status word the adapter does not know; read as working.',
    labelNames: ['adapter'],
    registers,
  });
  const faults = new Counter({
    name: 'taskferry_expression_faults_total',
    help: 'Expressions of an adapter that could not be evaluated on a reply.',
    labelNames: ['adapter'],
    registers,
  });
  const calls = new Histogram({
    name: 'taskferry_upstream_call_seconds',
    help: 'Upstream exchanges without the wait for the limits of the adapter, by whether a reply came.',
    labelNames: ['adapter', 'result'],
    registers,
  });
  const streams = new Gauge({
    name: 'taskferry_listen_streams',
    help: 'Open subscriptions/listen streams with task ids.',
    registers,
  });
  return {
    registry,
    taskCreated: (adapter) => created.inc({ adapter }),
    taskEnded: (adapter, outcome) => ended.inc({ adapter, outcome }),
    unknownStatus: (adapter) => unknown.inc({ adapter }),
    expressionFailed: (adapter) => faults.inc({ adapter }),
    upstreamCall: (adapter, result, seconds) => calls.observe({ adapter, result }, seconds),
    streams: (change) => streams.inc(change),
    countTasks(read) {
      new Gauge({
        name: 'taskferry_tasks',
        help: 'Stored tasks by adapter and stage.',
        labelNames: ['adapter', 'stage'],
        registers,
        async collect() {
          this.reset();
          for (const { adapter, stage, count } of await read()) this.set({ adapter, stage }, count);
        },
      });
    },
  };
}
