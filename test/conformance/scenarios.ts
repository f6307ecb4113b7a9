// The scenarios of the official suite that taskferry runs, with the number of checks each ran when it was recorded.
// Fewer checks than recorded fail the run: a scenario that silently tests less is no pass.

export interface Scenario {
  name: string;
  /** Undefined for the tasks extension: with a version given, the suite would skip those scenarios silently. */
  specVersion: '2025-06-18' | '2025-11-25' | '2026-07-28' | undefined;
  /** Passed and failed checks, without the skipped ones. */
  checks: number;
  /** The suite itself skips it. */
  skippedBySuite?: boolean;
}

const extension = (name: string, checks: number): Scenario => ({ name, specVersion: undefined, checks });
const current = (name: string, checks: number): Scenario => ({ name, specVersion: '2026-07-28', checks });
const early = (specVersion: '2025-06-18' | '2025-11-25', toolsList: number): Scenario[] => [
  { name: 'server-initialize', specVersion, checks: 2 },
  { name: 'ping', specVersion, checks: 2 },
  { name: 'tools-list', specVersion, checks: toolsList },
  { name: 'tools-call-simple-text', specVersion, checks: 2 },
  { name: 'tools-call-error', specVersion, checks: 2 },
];

export const scenarios: readonly Scenario[] = [
  extension('tasks-lifecycle', 9),
  extension('tasks-capability-negotiation', 5),
  extension('tasks-wire-fields', 4),
  extension('tasks-request-state-removal', 3),
  extension('tasks-mrtr-input', 4),
  extension('tasks-request-headers', 5),
  extension('tasks-dispatch-and-envelope', 9),
  { ...extension('tasks-status-notifications', 0), skippedBySuite: true },
  extension('tasks-required-task-error', 3),
  extension('tasks-mrtr-composition', 2),
  current('server-stateless', 28),
  current('http-header-validation', 14),
  current('http-custom-header-server-validation', 10),
  current('tools-list', 4),
  current('tools-call-simple-text', 2),
  current('tools-call-error', 2),
  current('json-schema-2020-12', 8),
  current('dns-rebinding-protection', 2),
  current('server-sse-multiple-streams', 1),
  current('input-required-result-basic-elicitation', 3),
  current('input-required-result-request-state', 3),
  current('input-required-result-multi-round', 4),
  current('input-required-result-missing-input-response', 2),
  current('input-required-result-result-type', 2),
  current('input-required-result-unsupported-methods', 2),
  current('input-required-result-tampered-state', 2),
  // One of its two checks is a warning here: it answers a question that was not asked before (no requestState),
  // and taskferry asks first.
  current('input-required-result-ignore-extra-params', 1),
  current('input-required-result-validate-input', 3),
  ...early('2025-06-18', 2),
  ...early('2025-11-25', 3),
];
