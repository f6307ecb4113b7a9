// YAML as files are written: marks, line ends, and positions inside every kind of text.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { describe, expect, it } from 'vitest';
import { parseYaml } from '../../src/config/yaml.ts';

function read(text: string) {
  const { source, problems } = parseYaml(text, 'file.yaml');
  expect(problems).toEqual([]);
  if (source === undefined) throw new Error('no source');
  return source;
}

describe('reading', () => {
  it('accepts a byte order mark and Windows line ends, which leave no trace in values', () => {
    expect(read('\ufeffa: one\r\nb: |\r\n  x\r\n  y\r\nc: "q"\r\n').value).toEqual({
      a: 'one',
      b: 'x\ny\n',
      c: 'q',
    });
  });

  it('reads YAML 1.2: yes and no are text', () => {
    expect(read('a: yes\nb: no\nc: on\nd: 2031-01-01\ne: 1_000\nf: true\ng: ~\n').value).toEqual({
      a: 'yes',
      b: 'no',
      c: 'on',
      d: '2031-01-01',
      e: '1_000',
      f: true,
      g: null,
    });
  });

  it('keeps quoted and tagged digits as text', () => {
    expect(read('a: "012"\nb: \'1.10\'\nc: !!str 0xdead\n').value).toEqual({
      a: '012',
      b: '1.10',
      c: '0xdead',
    });
  });

  it('reads numbers that are written as JSON writes them', () => {
    expect(read('[0, -1, 1.5, 9007199254740991, 0.1]').value).toEqual([0, -1, 1.5, 9007199254740991, 0.1]);
  });

  it.each(['+1', '1.', '.5', '1.0', '-0', '0o17', '.inf', '.nan', '1E3', '-9007199254740992'])(
    'refuses %s as a number and says to quote it',
    (number) => {
      const { problems } = parseYaml(`a: ${number}\n`, 'file.yaml');
      expect(problems).toMatchObject([{ line: 1, column: 4, hint: `quote it: "${number}"` }]);
    },
  );

  it('lets problems of values be told together, in file order', () => {
    const { problems } = parseYaml('b: 012\na: {<<: {x: 1}}\n__proto__: 1\n', 'file.yaml');
    expect(problems.map(({ line, column }) => [line, column])).toEqual([
      [1, 4],
      [2, 5],
      [3, 1],
    ]);
  });

  it('tells only the first syntax error, as the others follow from it', () => {
    const { problems } = parseYaml('a: { b: ${{ x }} }\nc: { d: ${{ y }} }\n', 'file.yaml');
    expect(problems).toHaveLength(1);
  });
});

describe('positions', () => {
  const text = `plain: one two
double: "a \\"q\\" \\u0041 two"
single: 'it''s two'
folded: >-
  one
  and two
literal: |
  one
   two
several: one
  two
`;

  it.each([
    ['plain', 1, 12],
    ['double', 2, 25],
    ['single', 3, 16],
    ['folded', 6, 7],
    ['literal', 9, 4],
    ['several', 11, 3],
  ])('finds a character inside a %s text', (key, line, column) => {
    const source = read(text);
    const value = (source.value as { [key: string]: string })[key] ?? '';
    const problem = source.problem([key], 'here', { offset: value.indexOf('two') });
    expect([problem.line, problem.column]).toEqual([line, column]);
  });

  it('points at keys, values, and the nearest parent of what is missing', () => {
    const source = read('a:\n  b: {c: 1}\n');
    expect(source.problem(['a', 'b'], 'x', { key: true })).toMatchObject({ line: 2, column: 3, path: 'a.b' });
    expect(source.problem(['a', 'b', 'c'], 'x')).toMatchObject({ line: 2, column: 10, path: 'a.b.c' });
    expect(source.problem(['a', 'b', 'd', 0, 'e'], 'x')).toMatchObject({
      line: 2,
      column: 3,
      path: 'a.b.d[0].e',
    });
  });
});
