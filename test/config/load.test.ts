// Sound adapters: what the loader makes of every part of the format.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Adapter, Tool } from '../../src/config/adapter.ts';
import { loadAdapter, loadAdapterFile } from '../../src/config/load.ts';
import { httpFormat } from '../../src/drivers/http/format.ts';
import { formatProblem } from '../../src/errors.ts';

const good = join(import.meta.dirname, 'good');
const formats = [httpFormat];

const head = `version: 1
name: sample
upstream: { driver: http, baseUrl: https://ci.example.com }
tools:
  run:
    description: Runs a job.
`;
const input = `    input:
      type: object
      required: [job]
      properties: { job: { type: string }, branch: { type: string } }
`;
const create = `    create:
      request: POST /jobs
      json: { job: "\${{ args.job }}" }
      capture: { id: response.body.id }
`;
const status = `    status:
      request: GET /jobs/\${{ job.id }}
      state: { of: response.body.state, working: [running], succeeded: [done] }
`;

function load(text: string): Adapter {
  const { adapter, problems } = loadAdapter(text, { file: 'sample.yaml', formats });
  expect(problems.map(formatProblem)).toEqual([]);
  if (adapter === undefined) throw new Error('not loaded');
  return adapter;
}

function tool(parts: string): Tool {
  const [only] = load(head + parts).tools;
  if (only === undefined) throw new Error('no tool');
  return only;
}

function warnings(parts: string): string[] {
  return loadAdapter(head + parts, { file: 'sample.yaml', formats }).warnings.map(formatProblem);
}

describe('the example adapters', () => {
  const names = readdirSync(good);

  it('are there', () => {
    expect(names).toContain('jenkins.yaml');
  });

  it.each(names)('%s loads without a problem or a warning', (name) => {
    const { adapter, problems, warnings: doubts } = loadAdapterFile(join(good, name), formats);
    expect([...problems, ...doubts].map(formatProblem)).toEqual([]);
    expect(adapter?.tools).toHaveLength(1);
  });

  it('load in the same way from their text alone, with Windows line ends and a byte order mark', () => {
    for (const name of names) {
      const text = readFileSync(join(good, name), 'utf8');
      const plain = loadAdapter(text, { file: 'stored', formats }).adapter;
      const marked = loadAdapter(`\ufeff${text.replaceAll('\n', '\r\n')}`, {
        file: 'stored',
        formats,
      }).adapter;
      expect(marked?.tools.map(({ key }) => key)).toEqual(plain?.tools.map(({ key }) => key));
      expect(plain?.digest).toMatch(/^[0-9a-f]{64}$/);
      expect(marked?.digest).not.toBe(plain?.digest);
      expect(plain?.text).toBe(text);
    }
  });

  it('map a reply to captures, words and messages', () => {
    const [batch] = load(readFileSync(join(good, 'openai-batch.yaml'), 'utf8')).tools;
    const stage = batch?.status[0];
    const scope = {
      response: {
        status: 200n,
        headers: {},
        body: { status: 'in_progress', request_counts: { completed: 12n, total: 40n } },
      },
    };
    expect(stage?.state.of?.evaluate(scope)).toBe('in_progress');
    expect(stage?.message?.render(scope)).toBe('12/40 requests');
    expect(batch?.create.map(({ name }) => name)).toEqual(['upload', 'start']);
    expect(batch?.result.maxBytes).toBe(4 * 1024 * 1024);
  });
});

describe('defaults', () => {
  it('are those of the reference', () => {
    const { limits } = load(head + create.replace('args.job', 'task.key') + status);
    expect(limits).toEqual({ concurrency: 8, rate: undefined });
    expect(tool(input + create + status)).toMatchObject({
      kind: 'job',
      timing: {
        every: 5000,
        max: 60_000,
        timeout: 86_400_000,
        keep: 86_400_000,
        settle: 0,
        onTimeout: 'leave',
      },
      withoutTasks: { mode: 'wait', waitMs: 45_000 },
      onDisconnect: 'keep',
      confirm: [],
      cancel: [],
      ask: [],
      result: { fetch: [], structured: undefined, text: undefined, links: [], maxBytes: 262_144 },
    });
  });

  it('a tool without input takes no arguments', () => {
    expect(tool(create.replace('args.job', 'task.key') + status).input).toEqual({
      type: 'object',
      additionalProperties: false,
    });
  });

  it('max grows with a longer every', () => {
    expect(tool(`${input}${create}${status}    timing: { every: 5m }\n`).timing).toMatchObject({
      every: 300_000,
      max: 300_000,
    });
  });
});

describe('state', () => {
  it('tries phases in the fixed order, whatever their order in the file', () => {
    const rules = tool(`${input}${create}    status:
      request: GET /jobs
      state:
        working: true
        input_required: response.body.gate
        succeeded: [done, 0, true]
        failed: response.status >= 400
        errored: [lost]
        cancelled: [gone]
        of: response.body.state
`).status[0]?.state;
    expect(rules?.rules.map(({ phase }) => phase)).toEqual([
      'cancelled',
      'errored',
      'failed',
      'succeeded',
      'input_required',
      'working',
    ]);
    expect(rules?.rules[3]).toEqual({ phase: 'succeeded', words: ['done', 0n, true] });
    expect(rules?.rules[5]).toEqual({ phase: 'working', always: true });
  });

  it('keeps the order of the list form', () => {
    const rules = tool(`${input}${create}    status:
      request: GET /jobs
      state:
        - { phase: working, when: response.status == 202 }
        - { phase: failed, when: response.body.?error.orValue("") != "" }
        - { phase: succeeded, when: true }
`).status[0]?.state;
    expect(rules?.of).toBeUndefined();
    expect(rules?.rules.map(({ phase }) => phase)).toEqual(['working', 'failed', 'succeeded']);
  });

  it('warns of a rule that takes every reply for an outcome', () => {
    const parts = `${input}${create}    status: { request: GET /jobs, state: { succeeded: true } }\n`;
    expect(warnings(parts)).toEqual([
      'sample.yaml:15:55 tools.run.status.state.succeeded: succeeded: true holds for every reply, also for one that says nothing (write the condition)',
    ]);
  });
});

describe('create steps', () => {
  it('take an idempotency key in a header, or anywhere in the request', () => {
    const withHeader = create.replace(
      'capture',
      'idempotency: { header: Idempotency-Key, ttl: 24h }\n      capture',
    );
    expect(tool(input + withHeader + status).create[0]?.idempotency).toEqual({
      header: 'Idempotency-Key',
      ttlMs: 86_400_000,
    });
    const inBody = create
      .replace('{ job: "${{ args.job }}" }', '{ ref: "${{ task.key }}" }')
      .replace('capture', 'idempotency: true\n      capture');
    expect(tool(input + inBody + status).create[0]?.idempotency).toEqual({
      header: undefined,
      ttlMs: undefined,
    });
  });

  it('look a job up by the key, within ten seconds unless told otherwise', () => {
    const find = `find:
        request: GET /jobs
        query: { ref: "\${{ task.key }}" }
        capture: { id: "response.body[0].id" }
`;
    const step = (more = ''): string => create.replace('capture', `${find}${more}      capture`);
    expect(tool(input + step() + status).create[0]?.find).toMatchObject({
      name: 'create.find',
      withinMs: 10_000,
    });
    expect(tool(input + step('        within: 1m\n') + status).create[0]?.find?.withinMs).toBe(60_000);
  });

  it('may be repeatable', () => {
    const step = create.replace('capture', 'repeatable: true\n      capture');
    expect(tool(input + step + status).create[0]?.repeatable).toBe(true);
  });
});

describe('captures', () => {
  const stages = `    status:
      - stage: queue
        request: GET /queue/\${{ job.id }}
        capture: { url: response.body.?url }
        state: { working: true, cancelled: response.body.?cancelled.orValue(false) }
      - stage: build
        request: GET \${{ job.url }}
        state: { succeeded: response.body.ok }
        message: At \${{ job.url }}
`;

  it('of a stage are known to later stages and to a result that only those can give', () => {
    const { status: found, result } = tool(
      `${input}${create}${stages}    result: { text: "\${{ job.url }}" }\n`,
    );
    expect(found.map(({ name }) => name)).toEqual(['queue', 'build']);
    expect([...(result.text?.reads ?? [])]).toEqual(['job.url']);
  });

  it('that may be missing are read behind the has() of a when', () => {
    const { cancel } = tool(`${input}${create}${stages}    cancel:
      - { when: has(job.url), request: "POST \${{ job.url }}stop" }
      - { when: "!has(job.url)", request: "DELETE /queue/\${{ job.id }}" }
`);
    expect(cancel[0]?.when?.evaluate({ job: { id: '1' } })).toBe(false);
    expect(cancel[1]?.when?.evaluate({ job: { id: '1' } })).toBe(true);
  });

  it('may use earlier ones of the same step', () => {
    const step = create.replace('{ id: response.body.id }', '{ id: response.body.id, name: job.id + "x" }');
    expect(tool(input + step + status).create[0]?.capture.map(({ name }) => name)).toEqual(['id', 'name']);
  });
});

describe('questions', () => {
  it('before the start are read as confirm.<key> in everything after', () => {
    const { confirm, create: steps } = tool(`${input}    confirm:
      - key: sure
        when: args.?branch.orValue("") == "main"
        message: Run \${{ args.job }} on main?
        schema: { type: object, required: [ok], properties: { ok: { type: boolean }, why: { type: string, maxLength: 80 } } }
    create:
      request: POST /jobs
      json: { why: "\${{ confirm.?sure.?why }}", ok: "\${{ has(confirm.sure) && confirm.sure.ok }}" }
      capture: { id: response.body.id }
${status}`);
    expect(confirm[0]?.message.render({ args: { job: 'x' } })).toBe('Run x on main?');
    expect(steps).toHaveLength(1);
  });

  it('of a waiting job read what their fetch captured, and answers only where they are sent', () => {
    const { ask } =
      tool(`${input}${create}${status.replace('succeeded: [done]', 'succeeded: [done], input_required: [waiting]')}    ask:
      - key: approve
        fetch: { request: GET /gates, capture: { gates: "response.body.map(g, g.id)" } }
        when: job.gates.size() > 0
        message: Approve \${{ job.gates.size() }} gates?
        schema: { type: object, required: [ok], properties: { ok: { type: boolean }, level: { enum: [low, high] }, n: { type: integer, minimum: 1 } } }
        onAccept: { request: POST /gates, json: { ok: "\${{ answer.ok }}", level: "\${{ answer.?level }}", gates: "\${{ job.gates }}" } }
        onDecline: { request: DELETE /gates }
`);
    expect(ask[0]?.message.render({ job: { gates: [1n, 2n] } })).toBe('Approve 2 gates?');
    expect(ask[0]?.onCancel).toEqual([]);
  });
});

describe('plain tools', () => {
  it('run call and render a result, with no job', () => {
    const listed = tool(`    call: { request: GET /jobs, query: { limit: 5 } }
    output: { type: object, properties: { jobs: { type: array } } }
    result: { structured: { jobs: "\${{ response.body.jobs }}" } }
`);
    expect(listed).toMatchObject({ kind: 'call', status: [], cancel: [], ask: [] });
    expect(listed.create).toHaveLength(1);
    expect(listed.result.structured?.render({ response: { body: { jobs: [1n] } } })).toEqual({ jobs: [1n] });
  });
});

describe('schemas', () => {
  it('keep what taskferry does not know, such as x-mcp-header', () => {
    const { input: schema } = tool(
      input.replace('branch: { type: string }', 'branch: { type: string, x-mcp-header: Branch }') +
        create +
        status,
    );
    expect(schema).toMatchObject({ properties: { branch: { 'x-mcp-header': 'Branch' } } });
  });

  it('may use references, combinators and patterns of 2020-12', () => {
    const parts = `    input:
      $schema: https://json-schema.org/draft/2020-12/schema
      $id: https://example.com/one
      type: object
      $defs: { name: { type: string, pattern: "^[a-z]+$" } }
      properties: { job: { $ref: "#/$defs/name" }, n: { type: [integer, "null"] } }
      anyOf: [{ required: [job] }, { required: [n] }]
${create}${status}`;
    tool(parts);
    // The same $id again, in another adapter, is no clash.
    tool(parts);
  });

  it('do not make arguments certain or uncertain where combinators decide', () => {
    const parts = `    input: { type: object, properties: { a: { type: string }, b: { type: string } }, oneOf: [{ required: [a] }, { required: [b] }] }
    create: { request: POST /jobs, json: { a: "\${{ args.a }}" }, capture: { id: response.body.id } }
${status}`;
    tool(parts);
  });

  it('allow undeclared arguments where the schema does', () => {
    tool(`    input: { type: object, additionalProperties: true }
    create: { request: POST /jobs, json: { x: "\${{ args.anything }}" }, capture: { id: response.body.id } }
${status}`);
  });
});

describe('clients without tasks', () => {
  it.each([
    ['reject', { mode: 'reject' }],
    ['wait', { mode: 'wait', waitMs: 45_000 }],
    ['{ wait: 30s }', { mode: 'wait', waitMs: 30_000 }],
  ])('get %s', (written, compiled) => {
    expect(tool(`${input}${create}${status}    withoutTasks: ${written}\n`).withoutTasks).toEqual(compiled);
  });
});

describe('warnings', () => {
  it('name variables that nothing reads, long tool names, and waits longer than clients have', () => {
    const text = `secrets: [UNUSED]\n${head.replace('  run:', `  ${'a'.repeat(41)}:`)}${input}${create}${status}    withoutTasks: { wait: 2m }\n`;
    const { adapter, warnings: found } = loadAdapter(text, { file: 'f.yaml', formats });
    expect(adapter).toBeDefined();
    expect(found.map(({ line, message }) => [line, message])).toEqual([
      [1, 'UNUSED is never read'],
      [6, 'the name has 41 characters'],
      [19, 'many clients give up after 60s'],
    ]);
  });
});

it('a login or signed token that nothing sends is a warning', () => {
  const credentials = `secrets: [KEY]
upstream:
  driver: http
  baseUrl: https://ci.example.com
  jwt: { app: { alg: HS256, key: "\${{ secrets.KEY }}" } }
  login: { request: POST /token, form: { key: "\${{ secrets.KEY }}" }, capture: { token: response.body.t } }
`;
  const text = head.replace(/upstream:.*\n/, () => credentials) + input + create + status;
  const { warnings: found } = loadAdapter(text, { file: 'f.yaml', formats });
  expect(found.map(({ path, message }) => `${path} ${message}`)).toEqual([
    'upstream.jwt is never read',
    'upstream.login is never read',
  ]);
});

describe('text that looks like a hole of another language', () => {
  const found = (json: string) =>
    warnings(`${input}${create.replace(/json: .*/, () => `json: ${json}`)}${status}`);

  it.each(['{{ args.job }}', '$' + '{args.job}', '{args.job}', 'a {{args.job}} b'])(
    'is a warning: %s',
    (text) => {
      const written = JSON.stringify({ list: [{ job: text }] });
      expect(found(written)).toEqual([
        expect.stringMatching(
          /create\.json\.list\[0\]\.job: this is sent as it stands \(a hole is written \$\{\{ … \}\}\)$/,
        ),
      ]);
    },
  );

  it.each(['$' + '{{ args.job }}', '$$' + '{{ args.job }}', '{{ other }}', '{"args": 1}', 'args.job'])(
    'is not seen in %s',
    (text) => {
      expect(found(JSON.stringify({ job: text }))).toEqual([]);
    },
  );
});

describe('files', () => {
  it('that cannot be read are problems without a position', () => {
    expect(loadAdapterFile(join(good, 'nowhere.yaml'), formats).problems).toMatchObject([
      { line: 0, message: 'the file does not exist' },
    ]);
    expect(loadAdapterFile(good, formats).problems).toMatchObject([
      { line: 0, message: 'is a folder, not a file' },
    ]);
  });

  it('name other files relative to themselves', () => {
    const text =
      head.replace('baseUrl: https://ci.example.com', 'baseUrl: https://ci.example.com, ca: ca.pem') +
      input +
      create +
      status;
    const { adapter } = loadAdapter(text, { file: join(good, 'x.yaml'), formats });
    expect(adapter?.upstream.config).toMatchObject({ tls: { ca: { file: join(good, 'ca.pem') } } });
    // Also when taskferry was told of the file by a relative path: steps run wherever the process has gone.
    const relative = loadAdapter(text, { file: 'adapters/x.yaml', formats }).adapter;
    expect(relative?.upstream.config).toMatchObject({ tls: { ca: { file: resolve('adapters/ca.pem') } } });
  });
});
