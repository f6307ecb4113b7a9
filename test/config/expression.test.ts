// CEL behind its guards: what compiles, what is refused and where, and what values come out as.

import { describe, expect, it } from 'vitest';
import {
  type CompileOptions,
  compileExpression,
  EvaluationFault,
  type Scope,
} from '../../src/config/expression.ts';
import type { Names } from '../../src/config/expression-names.ts';
import { namesOfSchema } from '../../src/config/schema-names.ts';
import { response, task } from '../../src/config/tool-names.ts';

const args = namesOfSchema(
  {
    type: 'object',
    required: ['owner', 'count', 'labels'],
    properties: {
      owner: { type: 'string' },
      count: { type: 'integer' },
      labels: { type: 'array', items: { type: 'string' } },
      branch: { type: 'string' },
      depth: { type: 'integer', default: 1 },
      inputs: { type: 'object', additionalProperties: { type: 'string' } },
      place: {
        type: 'object',
        required: ['city'],
        properties: { city: { type: 'string' }, zip: { type: 'string' } },
      },
    },
  },
  { path: 'args', declare: 'declare it under input.properties', defaults: true },
);
const names: Names = { args, task, response, job: { kind: 'any' } };

function compile(source: string, options: Partial<CompileOptions> = {}) {
  return compileExpression(source, { names, ...options });
}

function evaluate(source: string, scope: Scope, options: Partial<CompileOptions> = {}) {
  const { expression, problems } = compile(source, options);
  expect(problems).toEqual([]);
  return expression?.evaluate(scope);
}

function firstProblem(source: string, options: Partial<CompileOptions> = {}) {
  const { expression, problems } = compile(source, options);
  expect(expression).toBeUndefined();
  return problems[0];
}

const reply = (body: Scope[string]): Scope => ({
  response: { status: 200n, headers: {}, body: body ?? null, url: 'https://ci.example.com/v1/jobs' },
});

describe('names', () => {
  it('refuses an argument that the input schema does not have, and suggests the one that is meant', () => {
    expect(firstProblem('args.ownr')).toEqual({
      offset: 5,
      message: 'args has no "ownr", did you mean "owner"?',
    });
    expect(firstProblem('args.?ownr.orValue("x")')?.message).toContain('did you mean "owner"');
    expect(firstProblem('args["ownr"]')?.message).toContain('did you mean "owner"');
  });

  it('looks into nested arguments', () => {
    expect(firstProblem('args.?place.?town')?.message).toContain('args.place has no "town"');
    expect(evaluate('args.?place.?zip.orValue("none")', { args: { place: { city: 'Ulm' } } })).toBe('none');
  });

  it('refuses a plain read of an argument that may be missing, and accepts it behind .? or has()', () => {
    expect(firstProblem('args.branch')).toMatchObject({
      offset: 5,
      message: 'args.branch may be missing here',
    });
    expect(evaluate('args.?branch.orValue("main")', { args: {} })).toBe('main');
    expect(evaluate('has(args.branch) ? args.branch : "main"', { args: { branch: 'dev' } })).toBe('dev');
    expect(compile('args.branch', { present: new Set(['args.branch']) }).problems).toEqual([]);
  });

  it('treats an argument with a default as always there', () => {
    expect(evaluate('args.depth + 1', { args: { depth: 1n } })).toBe(2n);
  });

  it('tells a known name in the wrong place from a misspelt one', () => {
    expect(firstProblem('answer.ok')?.message).toBe('"answer" can\'t be read here');
    expect(firstProblem('respons.body')?.message).toBe('unknown name "respons", did you mean "response"?');
  });

  it('never offers the task id', () => {
    expect(firstProblem('task.id')?.message).toBe('task has no "id"');
  });

  it('lists what an expression reads as dotted names', () => {
    const { expression } = compile('args.owner + task.key + string(response.body.items.map(x, x.id).size())');
    expect([...(expression?.reads ?? [])].sort()).toEqual(['args.owner', 'response', 'task.key']);
  });

  it('does not take a loop variable for a name of the file', () => {
    expect(evaluate('response.body.map(job, job.id)', reply([{ id: 1n }]))).toEqual([1n]);
  });
});

describe('header names', () => {
  it.each([
    ['response.headers.Location', 'write response.headers.location'],
    ['response.headers["Location"]', 'write response.headers.location'],
    ['response.headers[?"X-Request-Id"]', 'write response.headers[?"x-request-id"]'],
    ['"Location" in response.headers', 'write response.headers.location'],
    ['has(response.headers.Location)', 'write response.headers.location'],
  ])('that are not in lower case are refused: %s', (source, hint) => {
    expect(firstProblem(source)).toMatchObject({ message: 'header names are in lower case here', hint });
  });

  it('are free in bodies and loops', () => {
    expect(evaluate('"location" in response.headers', reply(null))).toBe(false);
    expect(evaluate('response.body.headers.Location', reply({ headers: { Location: 'x' } }))).toBe('x');
    expect(
      evaluate('response.body.map(response, response.headers.A)', reply([{ headers: { A: 'x' } }])),
    ).toEqual(['x']);
  });
});

describe('types', () => {
  it('names the function for a length', () => {
    expect(firstProblem('response.body.items.length() > 0')?.hint).toBe('write size(x)');
    expect(firstProblem('args.owner.length() > 0')?.hint).toBe('write size(x)');
  });

  it('finds a mix of types before anything runs', () => {
    expect(firstProblem('args.count + "x"')?.message).toBe('no such overload: int + string');
    expect(firstProblem('args.owner == 3')?.message).toBe('no such overload: string == int');
    expect(firstProblem('response.status == "200"')?.message).toBe('no such overload: int == string');
    expect(firstProblem('args.labels.map(l, l + 1)')?.message).toContain('no such overload');
  });

  it('refuses text where a condition is wanted', () => {
    expect(firstProblem('args.owner', { want: 'bool' })).toMatchObject({
      message: 'gives string, but true or false is wanted',
    });
    expect(firstProblem('response.body.?done', { want: 'bool' })?.hint).toBe('add .orValue(default)');
  });

  it('allows the arguments as a whole', () => {
    expect(evaluate('{"all": args}', { args: { owner: 'o' } })).toEqual({ all: { owner: 'o' } });
    expect(evaluate('size(args)', { args: { owner: 'o' } })).toBe(1n);
  });
});

describe('guards', () => {
  it.each([
    ['"aaaa".matches("^(a+)+$")', 'matches() is not available'],
    ['response.body.a.map(x, x.b.map(y, y))', 'map() inside another loop'],
    ['response.body.a.exists(x, x.b.all(y, y > 1))', 'all() inside another loop'],
    ['cel.bind(x, 1, x + x)', 'cel.bind() is not available'],
    [`[${Array(101).fill('1').join(',')}]`, 'maxListElements'],
    [Array(300).fill('response.body').join(' + '), 'maxAstNodes'],
    [`${'('.repeat(40)}1${')'.repeat(40)}`, 'maxDepth'],
  ])('refuses %s', (source, message) => {
    expect(firstProblem(source)?.message).toContain(message);
  });

  it('allows loops one after the other', () => {
    expect(evaluate('response.body.filter(x, x > 1).map(x, x * 2)', reply([1n, 2n, 3n]))).toEqual([4n, 6n]);
  });

  it('refuses a value larger than 256 KiB, or than the place allows', () => {
    const big = 'x'.repeat(200 * 1024);
    expect(() => evaluate('[response.body, response.body]', reply(big))).toThrow(/larger than 262144 bytes/);
    expect(evaluate('[response.body, response.body]', reply(big), { maxBytes: 1024 * 1024 })).toEqual([
      big,
      big,
    ]);
  });

  it('refuses a loop that reads too much from outside itself, and allows a usual one', () => {
    const many = Array.from({ length: 50_000 }, (_, index) => BigInt(index));
    expect(() =>
      evaluate('response.body.a.filter(x, x in response.body.b)', reply({ a: many, b: many })),
    ).toThrow(/too large for what is made of it/);
    const text = 'x'.repeat(500_000);
    expect(() =>
      evaluate('response.body.t.split("").filter(x, response.body.t.contains(x + "y"))', reply({ t: text })),
    ).toThrow(/too large for what is made of it/);
    const jobs = many.slice(0, 20_000).map((id) => ({ id, state: 'done' }));
    const scope = { ...reply({ jobs }), job: { id: 7n, ids: [1n, 2n, 3n] } };
    expect(evaluate('response.body.jobs.filter(j, j.id == job.id).size()', scope)).toBe(1n);
    expect(evaluate('response.body.jobs.filter(j, j.id in job.ids).size()', scope)).toBe(3n);
  });

  describe('over a reply of 1 MiB', () => {
    const items = Array.from({ length: 250_000 }, () => 1n);
    const strs = Array.from({ length: 150_000 }, (_, index) => `a${index % 10}`);
    const text = 'line\n'.repeat(200_000);
    const json = JSON.stringify(strs.slice(0, 100_000));
    const repeated = (count: number, part: string, joint: string) => Array(count).fill(part).join(joint);

    it.each([
      ['adds a list to itself again and again', `size(${repeated(100, 'response.body.items', ' + ')})`],
      [
        'makes a large map of each item',
        `size(response.body.items.map(i, {${Array.from({ length: 90 }, (_, k) => `"k${k}": i`).join(', ')}}))`,
      ],
      ['loops over one list thirty times', repeated(30, 'response.body.items.map(i, i + 1).size()', ' + ')],
      ['joins many texts at each turn', `size(response.body.strs.map(i, ${repeated(60, 'i', ' + ')}))`],
      ['joins with a long separator', `size(response.body.strs.join("${'b'.repeat(1000)}"))`],
      [
        'loops over characters and joins them',
        `size(response.body.text.split("").join("${'b'.repeat(99)}"))`,
      ],
      [
        'searches all of a text at each turn',
        'response.body.strs.exists(s, response.body.text.contains(s + "!"))',
      ],
      ['merges a map into every item', 'response.body.strs.map(s, merge(response.body, {"s": s})).size()'],
      ['parses a large text at each turn', 'response.body.strs.map(s, parseJson(s + response.body.text))'],
      [
        'searches what it parses at each turn',
        'parseJson(response.body.json).filter(s, s in response.body.strs).size()',
      ],
      ['writes a large value at each turn', 'response.body.strs.map(s, size(toJson(response.body.items)))'],
      [
        'loops over what two branches give',
        '(response.status > 1 ? response.body.items : []).map(i, [i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i]).size()',
      ],
    ])('refuses, before anything runs, what %s', (_, source) => {
      const { expression } = compile(source);
      // Told by the count before anything runs.
      expect(() => expression?.evaluate(reply({ items, strs, text, json }))).toThrow(
        /too large for what is made of it/,
      );
      expect(() =>
        expression?.evaluate(reply({ items: [], strs: ['1'], text: '2', json: '[]' })),
      ).not.toThrow();
    });

    it.each([
      ['response.body.strs.filter(s, s.startsWith("a1")).size()', 15_000n],
      ['response.body.text.split("\\n").filter(l, l.contains("in")).size()', 200_000n],
      ['size(response.body.strs.map(s, s + ".txt").join(", "))', 1_199_998n],
      ['response.body.items.all(i, i == 1)', true],
      ['size(response.body.items + response.body.items)', 500_000n],
    ])('evaluates %s', (source, value) => {
      expect(evaluate(source, reply({ items, strs, text }))).toBe(value);
    });

    it('refuses at once what writes a long whole number at each turn', () => {
      const { expression } = compile('response.body.items.exists(i, string(response.body.n) == "x")');
      const n = 10n ** 999n;
      expect(() => expression?.evaluate(reply({ items: items.slice(0, 60_000), n }))).toThrow(/too large/);
      expect(expression?.evaluate(reply({ items: [1n, 2n], n }))).toBe(false);
    });

    it.each([
      ['response.body.none.exists(i, i.state == "x")'],
      ['response.body.none.all(i, i.state == "x")'],
      ['response.body.none.map(i, i.a == 1 || true).size()'],
      ['response.body.none.filter(i, i.a == 1 && true || i != 1).exists(i, i.b == 1)'],
      ['response.body.items.exists(i, i > "x")'],
      ['response.body.items.exists(i, int("x") > i)'],
      ['response.body.lists.map(i, i[?0].orValue(1)).size()'],
      ['response.body.lists.exists(i, i[0] == 1)'],
      ['response.body.strs.exists(s, response.body.map[s] == 1)'],
    ])('refuses what makes a fault at each turn and goes on, before anything runs: %s', (source) => {
      const none = Array.from({ length: 300_000 }, () => ({}));
      const lists = Array.from({ length: 300_000 }, () => []);
      const { expression } = compile(source);
      // Told by the count before anything runs.
      expect(() => expression?.evaluate(reply({ items, strs, none, lists, map: {} }))).toThrow(
        /too large for what is made of it/,
      );
      const few = { items: [1n, 2n], strs: ['a'], none: [{}, {}], lists: [[]], map: {} };
      // Faults that are not hidden by a later turn are still told.
      if (!source.includes('map(')) expect(() => expression?.evaluate(reply(few))).toThrow(EvaluationFault);
    });

    it.each([
      ['response.body.jobs.exists(j, j.state == "failed" || j.state == "error")', false],
      ['response.body.jobs.all(j, j.owner.name.startsWith("u") && j.n >= 0 && j.n % 2 < 2)', true],
      ['response.body.jobs.exists(j, has(j.end) && j.end.code > 0)', false],
      ['response.body.jobs.exists(j, j.owner.login != null && j.owner.login.startsWith("a"))', false],
      ['response.body.jobs.all(j, has(j.end) ? j.end.code > 0 : j.owner.name != "")', true],
      ['response.body.jobs.exists(j, !(!has(j.end) || j.end.code == 0))', false],
      ['response.body.jobs.exists(j, j.?end.?code.orValue(0) == 1)', false],
      ['response.body.jobs.filter(j, j.state == "done" && j.n > 99997).map(j, j.n)', [99_998n, 99_999n]],
      ['response.body.jobs.filter(j, j.n > 1).exists(j, j.state == "failed")', false],
    ])('loops over 100,000 sound items: %s', (source, value) => {
      const jobs = Array.from({ length: 100_000 }, (_, n) => ({
        state: 'done',
        n: BigInt(n),
        owner: { name: `u${n}`, login: null },
      }));
      expect(evaluate(source, reply({ jobs }))).toEqual(value);
    });

    it('goes on after a fault in each of some thousand items', () => {
      const jobs = [...Array.from({ length: 30_000 }, () => ({})), { state: 'x' }];
      expect(evaluate('response.body.jobs.exists(j, j.state == "x")', reply({ jobs }))).toBe(true);
    });

    it('makes a short list of a hundred large items', () => {
      const item = { id: 7n, labels: ['a', 'b'], owner: { login: 'x' }, body: 'y'.repeat(10_000) };
      const runs = Array.from({ length: 100 }, () => item);
      const source =
        'response.body.runs.filter(r, "a" in r.labels).map(r, {"id": r.id, "by": r.owner.login, "name": r.owner.login + "/" + string(r.id)})';
      expect(evaluate(source, reply({ runs }))).toHaveLength(100);
    });
  });

  it('only sees own properties of data', () => {
    for (const source of [
      'response.body.constructor',
      'response.body.toString',
      'response.body["__proto__"]',
    ])
      expect(() => evaluate(source, reply({}))).toThrow(EvaluationFault);
  });

  describe.each([
    'constructor',
    'toString',
    'valueOf',
    'hasOwnProperty',
    '__proto__',
    '__defineGetter__',
    'prototype',
    'length',
    'size',
    'then',
  ])('data with a member called %s', (name) => {
    const odd = JSON.parse(`{"${name}": "x", "a": 1}`, (_key, value) =>
      typeof value === 'number' ? BigInt(value) : value,
    );
    const scope = { ...reply({ odd, list: [odd, { a: 2n }] }), job: odd };

    it.each([
      ['response.body.odd', odd],
      ['response.body', { odd, list: [odd, { a: 2n }] }],
      ['response.body.odd.a', 1n],
      [`response.body.odd["${name}"]`, 'x'],
      [`response.body.odd[?"${name}"].orValue("none")`, 'x'],
      [`response.body.list[1][?"${name}"].orValue("none")`, 'none'],
      [`"${name}" in response.body.odd`, true],
      [`"${name}" in response.body.list[1]`, false],
      ['has(response.body.odd.a) && has(job.a) && !has(job.b)', true],
      ['size(response.body.odd)', 2n],
      ['response.body.list.map(i, i.a)', [1n, 2n]],
      ['response.body.list.filter(i, i.a == 1)', [odd]],
      [`response.body.list.exists(i, i[?"${name}"].hasValue())`, true],
      ['response.body.odd == response.body.list[0]', true],
      ['response.body.odd == response.body.list[1]', false],
      ['response.body.odd in response.body.list', true],
      ['size(job.map(k, job[k]))', 2n],
      ['merge(response.body.odd, {"b": 1}).a', 1n],
      [`merge({"b": 1}, response.body.odd)["${name}"]`, 'x'],
      ['fromEntries(job.map(k, {"key": k, "value": job[k]}))', odd],
      ['fromEntries(job.map(k, {"key": k, "value": job[k]})).a', 1n],
      ['[response.body.odd, 1][0].a', 1n],
      ['{"b": response.body.odd}', { b: odd }],
      ['(1 == 1 ? response.body.odd : job).a', 1n],
    ])('gives for %s what any other does', (source, value) => {
      expect(evaluate(source, scope)).toEqual(value);
    });
  });

  it('refuses a map key that would be lost', () => {
    for (const key of ['constructor', 'prototype', '__proto__'])
      expect(firstProblem(`{"a": 1, "${key}": 2}`)).toMatchObject({
        offset: 9,
        message: `a map that is written out can't have the key "${key}"`,
      });
  });

  it('does not let secrets be read as a whole or by a computed name', () => {
    const secrets: Names = {
      secrets: {
        kind: 'members',
        members: { TOKEN: { type: 'string', certain: true } },
        open: false,
        declare: '',
      },
      args,
    };
    for (const source of ['secrets', 'secrets[args.owner]', 'size(secrets)'])
      expect(firstProblem(source, { names: secrets })?.message).toBe('secrets can only be read one by one');
  });

  it('tells no data in the fault of an expression that reads a secret', () => {
    const secrets: Names = { secrets: { kind: 'any' } };
    const { expression } = compileExpression('bool(secrets.TOKEN)', { names: secrets });
    let message = '';
    try {
      expression?.evaluate({ secrets: { TOKEN: 'hunter2hunter2' } });
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain('bool_conversion_error');
    expect(message).not.toContain('hunter2');
  });
});

describe('values', () => {
  it('keeps whole numbers exact', () => {
    expect(evaluate('response.body.id', reply({ id: 7421900188888888881n }))).toBe(7421900188888888881n);
    expect(evaluate('string(response.body.id)', reply({ id: 12345678901234567890n }))).toBe(
      '12345678901234567890',
    );
    expect(evaluate('response.body.n + 1', reply({ n: 9007199254740993n }))).toBe(9007199254740994n);
  });

  it('gives undefined for an empty optional and leaves it out of lists and maps', () => {
    expect(evaluate('response.body.?a.?b', reply({}))).toBeUndefined();
    expect(evaluate('{"a": response.body.?a, "b": 1}', reply({}))).toEqual({ b: 1n });
    expect(evaluate('[response.body.?a, response.body.?b]', reply({ b: 2n }))).toEqual([2n]);
  });

  it('turns times into ISO text and compares them as instants', () => {
    expect(evaluate('timestamp("2031-01-01T01:00:00+02:00")', {})).toBe('2030-12-31T23:00:00.000Z');
    expect(
      evaluate(
        'timestamp(response.body.a) < timestamp(response.body.b)',
        reply({
          a: '2031-01-01T00:00:00Z',
          b: '2031-01-01T00:00:00.500Z',
        }),
      ),
    ).toBe(true);
    expect(evaluate('duration("90m")', {})).toBe('5400s');
  });

  it('refuses numbers that are not finite, and bytes', () => {
    for (const source of ['1.0 / 0.0', 'double("nan")', 'b"abc"', 'type(1)'])
      expect(() => evaluate(source, {})).toThrow(EvaluationFault);
    expect(() => evaluate('1 / 0', {})).toThrow(/division by zero/);
  });

  it('gives lists for no, one and two items', () => {
    for (const items of [[], [1n], [1n, 2n]])
      expect(evaluate('response.body.map(x, x)', reply(items))).toEqual(items);
  });

  it('has no truth for null, and no number for text', () => {
    expect(evaluate('response.body.x == null', reply({ x: null }))).toBe(true);
    expect(() => evaluate('response.body.x > 0', reply({ x: '37' }))).toThrow(EvaluationFault);
    expect(() => evaluate('response.body.missing == null', reply({}))).toThrow(/No such key: missing/);
  });
});

describe('helpers', () => {
  it.each([
    ['https://ci.example.com/queue/item/41/', '41'],
    ['https://ci.example.com/queue/item/41?x=1#y', '41'],
    ['/jobs/a%2Fb', 'a/b'],
    ['jobs/100%', '100%'],
  ])('lastSegment(%s) is %s', (url, segment) => {
    expect(evaluate('lastSegment(response.body.url)', reply({ url }))).toBe(segment);
  });

  it('lastSegment has no answer for a URL without a path', () => {
    expect(() =>
      evaluate('lastSegment(response.body.url)', reply({ url: 'https://ci.example.com/' })),
    ).toThrow(/no path segment/);
  });

  it.each([
    ['ops/7', 'https://ci.example.com/v1/ops/7'],
    ['?op=7', 'https://ci.example.com/v1/jobs?op=7'],
    ['/abs/path', 'https://ci.example.com/abs/path'],
    ['//other.example.com/x', 'https://other.example.com/x'],
    ['https://other.example.com/y', 'https://other.example.com/y'],
  ])('resolveUrl(%s) is %s', (to, url) => {
    expect(evaluate('resolveUrl(response.body.to)', reply({ to }), { resolveUrl: true })).toBe(url);
  });

  it('passes an empty optional through', () => {
    expect(
      evaluate('resolveUrl(response.headers[?"location"])', reply(null), { resolveUrl: true }),
    ).toBeUndefined();
    expect(evaluate('lastSegment(response.headers[?"location"])', reply(null))).toBeUndefined();
  });

  it('merge gives one map of both, in which the second wins', () => {
    expect(evaluate('merge(response.body.a, {"b": 2, "c": null})', reply({ a: { a: 1n, b: 1n } }))).toEqual({
      a: 1n,
      b: 2n,
      c: null,
    });
    expect(() => evaluate('merge(response.body.a, {})', reply({ a: 'text' }))).toThrow(EvaluationFault);
  });

  it('parseJson reads JSON text, exactly, and toJson writes it', () => {
    const body = { text: '{"a": [1, 90071992547409931], "b": "c"}', value: { a: [1n, true, null], b: 'c"' } };
    expect(evaluate('parseJson(response.body.text).a[1]', reply(body))).toBe(90071992547409931n);
    expect(evaluate('toJson(response.body.value)', reply(body))).toBe('{"a":[1,true,null],"b":"c\\""}');
    expect(evaluate('toJson({"n": parseJson(response.body.text).b})', reply(body))).toBe('{"n":"c"}');
    expect(evaluate('parseJson(response.body.?none).orValue("nothing")', reply(body))).toBe('nothing');
    expect(() => evaluate('parseJson(response.body.b)', reply({ b: 'secret text' }))).toThrow(
      /^the text is not JSON in/,
    );
    expect(() => evaluate('parseJson(response.body.b)', reply({ b: '['.repeat(100) }))).toThrow(
      EvaluationFault,
    );
    expect(() => evaluate('toJson(response.body.?none)', reply({}))).toThrow(EvaluationFault);
  });

  it('does not offer resolveUrl outside captures', () => {
    expect(firstProblem('resolveUrl("x")')?.message).toBe('resolveUrl() can only be used in a capture');
  });
});
