// A connection made from an adapter as it is written, with the steps of one plain tool.

import { onTestFinished } from 'vitest';
import type { Adapter } from '../../../src/config/adapter.ts';
import { loadAdapter } from '../../../src/config/load.ts';
import type { ConnectContext, PerformOptions, StepReply } from '../../../src/drivers/driver.ts';
import type { HttpStep, HttpUpstream } from '../../../src/drivers/http/compiled.ts';
import { connectHttp, type HttpOptions } from '../../../src/drivers/http/connection.ts';
import { httpFormat } from '../../../src/drivers/http/format.ts';
import { formatProblem } from '../../../src/errors.ts';
import type { JsonObject } from '../../../src/exact-json.ts';

export interface Written {
  /** Fields of `upstream` beside driver and baseUrl, at column 0. */
  upstream: string;
  /** Steps of the tool, one each, in one line. Default: a plain GET. */
  steps?: readonly string[];
  /** Variables and secrets by name. */
  env?: { [name: string]: string };
  secrets?: { [name: string]: string };
  file?: string;
}

/** The text of an adapter whose baseUrl is in the variable BASE. */
function writtenText({
  upstream,
  steps = ['{ request: GET /jobs }'],
  env = {},
  secrets = {},
}: Written): string {
  return [
    'version: 1',
    'name: sample',
    `env: ${JSON.stringify(['BASE', ...Object.keys(env)])}`,
    `secrets: ${JSON.stringify(Object.keys(secrets))}`,
    'upstream:',
    '  driver: http',
    '  baseUrl: "$'.concat('{{ env.BASE }}"'),
    ...upstream.split('\n').map((line) => `  ${line}`),
    'tools:',
    '  run:',
    '    description: Runs.',
    '    input: { type: object, required: [url, headers], properties: { url: { type: string }, headers: { type: object } } }',
    '    call:',
    ...steps.map((step) => `      - ${step}`),
    '',
  ].join('\n');
}

/** What is wrong with it, one `path: message` each. */
export function faultsOf(written: Written): string[] {
  const { problems } = loadAdapter(writtenText(written), { file: 'sample.yaml', formats: [httpFormat] });
  return problems.map(({ path, message }) => `${path}: ${message}`);
}

/** The compiled upstream. @throws Error with the problems of a text that does not load. */
export function configOf(written: Written): unknown {
  return adapterOf(written).upstream.config;
}

function adapterOf(written: Written): Adapter {
  const { adapter, problems } = loadAdapter(writtenText(written), {
    file: written.file ?? 'sample.yaml',
    formats: [httpFormat],
  });
  if (adapter === undefined) throw new Error(problems.map(formatProblem).join('\n'));
  return adapter;
}

export interface WrittenConnection {
  /** Performs the step at `index`. */
  perform(index?: number, scope?: JsonObject, options?: PerformOptions): Promise<StepReply>;
  secrets(): string[];
  close(): Promise<void>;
  /** Variables as they are read at each call; tests may change them. */
  values: { env: { [name: string]: string }; secrets: { [name: string]: string } };
}

/** Closed with the test. @throws Error with the problems of a text that does not load. */
export function connectWritten(
  base: string,
  written: Written,
  options: HttpOptions & Partial<ConnectContext> = {},
): WrittenConnection {
  const adapter = adapterOf(written);
  const values = { env: { BASE: base, ...written.env }, secrets: { ...written.secrets } };
  const { refreshSecrets = () => false, redact, budget, ...http } = options;
  const connection = connectHttp(
    adapter.upstream.config as HttpUpstream,
    {
      variables: () => structuredClone(values),
      refreshSecrets,
      ...(redact && { redact }),
      ...(budget && { budget }),
    },
    { env: {}, ...http },
  );
  onTestFinished(() => connection.close());
  const steps = (adapter.tools[0]?.create ?? []).map(({ request }) => request as HttpStep);
  return {
    perform(index = 0, scope = {}, performing = {}) {
      const step = steps[index];
      if (step === undefined) throw new Error(`there is no step ${index}`);
      return connection.perform(step, { args: {}, job: {}, ...scope }, performing);
    },
    secrets: () => [...(connection.secrets?.() ?? [])],
    close: () => connection.close(),
    values,
  };
}
