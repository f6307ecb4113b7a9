// What an adapter's exchanges tell the log and the metrics, and what its steps know of secrets and variables.

import type { Clock } from '../clock.ts';
import { createRedactor } from '../config/redact.ts';
import type { Variables, VariableValues } from '../config/variables.ts';
import { TaskferryError } from '../errors.ts';
import type { Log } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Connection, StepReply } from './driver.ts';
import type { StepContext } from './steps.ts';

export interface StepServices extends Pick<StepContext, 'redact' | 'env'> {
  /** For the steps of one tool. */
  reports(tool: string): Pick<StepContext, 'fault' | 'unknownStatus' | 'pollRejected'>;
}

/** Redaction, variables and reports for the steps of one adapter. */
export function stepServices(
  name: string,
  variables: Variables,
  /** What must not be shown: secrets, and credentials that were made with them. */
  secrets: () => Iterable<string>,
  log: Log,
  metrics: Metrics,
): StepServices {
  const redactor = createRedactor(secrets);
  /** What was logged already: an adapter that misses a word misses it at every poll. */
  const reported = new Set<string>();
  const once = (key: string, report: () => void): void => {
    if (reported.has(key) || reported.size >= reportLimit) return;
    reported.add(key);
    report();
  };
  return {
    redact: (text) => redactor.redact(text),
    env: () => valuesOf(variables).env,
    reports(tool) {
      const about = { adapter: name, tool };
      return {
        fault(what, error) {
          metrics.expressionFailed(name);
          once(`${tool} fault ${what}`, () =>
            log.warn(
              { ...about, at: what, error: error.message },
              'an expression could not be evaluated on a reply',
            ),
          );
        },
        unknownStatus(word) {
          metrics.unknownStatus(name);
          once(`${tool} status ${word}`, () =>
            log.warn({ ...about, status: word }, 'a status that no state rule knows is read as working'),
          );
        },
        pollRejected(status, reason) {
          once(`${tool} rejected ${status}`, () =>
            log.warn({ ...about, reason }, 'the upstream refuses to tell the status of a job'),
          );
        },
      };
    },
  };
}

const reportLimit = 1_000;

/** Empty while a variable is missing: the connection reports that, with its name, at each call. */
function valuesOf(variables: Variables): VariableValues {
  try {
    return variables.values();
  } catch (error) {
    if (error instanceof TaskferryError) return { env: {}, secrets: {} };
    throw error;
  }
}

/** At most one line of a kind per minute and adapter: an upstream that flaps must not fill the log. */
const reportEveryMs = 60_000;

/** Tells the log when an upstream goes out of reach or refuses the credential, and when it is back. */
export function reachReport(adapter: string, clock: Clock, log: Log): (reply: StepReply) => void {
  let down: { since: number; told: boolean } | undefined;
  let lastDown = Number.NEGATIVE_INFINITY;
  let lastRefused = Number.NEGATIVE_INFINITY;
  return (reply) => {
    const now = clock.monotonic();
    if (reply.kind === 'failed') {
      if (reply.code === 'credential') {
        if (now - lastRefused < reportEveryMs) return;
        lastRefused = now;
        log.warn({ adapter, reason: reply.reason }, 'the credential of the upstream does not work');
        return;
      }
      if (reply.code === 'aborted' || reply.code === 'invalid_request' || down !== undefined) return;
      down = { since: now, told: now - lastDown >= reportEveryMs };
      if (!down.told) return;
      lastDown = now;
      log.warn({ adapter, reason: reply.reason }, 'the upstream is out of reach');
      return;
    }
    if (down?.told) {
      const seconds = Math.round((now - down.since) / 1_000);
      log.info({ adapter, seconds }, 'the upstream is back');
    }
    down = undefined;
    const status = reply.response.status;
    const refused = (status === 401n || status === 403n) && reply.limited !== true;
    if (!refused || now - lastRefused < reportEveryMs) return;
    lastRefused = now;
    log.warn({ adapter, status: Number(status) }, 'the upstream refuses the credential');
  };
}

/** The connection, whose replies are shown to `report` as well. */
export function reported(connection: Connection, report: (reply: StepReply) => void): Connection {
  return {
    async perform(step, scope, options) {
      const reply = await connection.perform(step, scope, options);
      report(reply);
      return reply;
    },
    secrets: () => connection.secrets?.() ?? [],
    close: () => connection.close(),
  };
}
