// Holes in text and structures: where they start and end, and what becomes of their values.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are what is tested.

import { describe, expect, it } from 'vitest';
import { EvaluationFault, type Scope } from '../../src/config/expression.ts';
import { compileText, compileValue } from '../../src/config/template.ts';
import type { Json } from '../../src/exact-json.ts';

const options = { names: { args: { kind: 'any' as const }, env: { kind: 'any' as const } } };

function text(source: string, args: Json = {}): string {
  const { template, problems } = compileText(source, options);
  expect(problems).toEqual([]);
  return template.render({ args });
}

function value(raw: Json, scope: Scope = {}): Json | undefined {
  const { template, problems } = compileValue(raw, options);
  expect(problems).toEqual([]);
  return template.render(scope);
}

describe('text', () => {
  it('puts values between the words', () => {
    expect(text('Job ${{ args.id }} is ${{args.state}}.', { id: 7421900188888888881n, state: 'done' })).toBe(
      'Job 7421900188888888881 is done.',
    );
    expect(text('${{ args.ok }}/${{ args.part }}', { ok: true, part: 0.5 })).toBe('true/0.5');
  });

  it('writes a literal hole for $${{', () => {
    expect(text('$${{ args.x }} and $${{')).toBe('${{ args.x }} and ${{');
    expect(text('a$b ${ c } $$ {{ d }}')).toBe('a$b ${ c } $$ {{ d }}');
  });

  it('finds the end of a hole behind braces and strings', () => {
    expect(text('${{ "}}" }}!')).toBe('}}!');
    expect(text('${{ {"a": {"b": "x"}}.a.b }}')).toBe('x');
    expect(text("${{ '}}' + \"a'}}\" }}.")).toBe("}}a'}}.");
    expect(text('${{ "\\"}}" }}.')).toBe('"}}.');
    expect(text('${{ r"ad" }}.')).toBe('ad.');
    expect(text("${{ '''}}''' }}.")).toBe('}}.');
  });

  it('inserts values as they are and never scans them again', () => {
    const tricky = 'pa$&ss$$x$1 ${{ env.OTHER }} ${HOME}';
    expect(text('a ${{ args.x }} b', { x: tricky })).toBe(`a ${tricky} b`);
    expect(text('${{ args.x }}', { x: 'ab: c #d "e"\nline\n' })).toBe('ab: c #d "e"\nline\n');
  });

  it('faults on nothing, null, lists and maps instead of inventing text', () => {
    for (const x of [null, [1n], { a: 1n }])
      expect(() => text('${{ args.x }}', { x })).toThrow(EvaluationFault);
    expect(() => text('${{ args.?x }}')).toThrow(/gives no value/);
  });

  it('reports a hole that is not closed, and every faulty hole, at its place', () => {
    expect(compileText('a ${{ args.x', options).problems).toMatchObject([{ offset: 2 }]);
    expect(compileText('${{ args.a + }} ${{ nope.x }}', options).problems).toMatchObject([
      { offset: 12 },
      { offset: 20 },
    ]);
  });

  it('collects what it reads', () => {
    const names = {
      args: {
        kind: 'members' as const,
        members: { a: { type: 'dyn', certain: true } },
        open: true,
        declare: '',
      },
    };
    expect([...compileText('${{ args.a }} ${{ args.b }}', { names }).template.reads]).toEqual([
      'args.a',
      'args.b',
    ]);
  });
});

describe('structures', () => {
  it('keeps the type of a string that is one hole', () => {
    const args = { n: 3n, list: [1n, 2n], map: { a: null }, yes: false, half: 0.5 };
    for (const [key, item] of Object.entries(args))
      expect(value(`\${{ args.${key} }}`, { args })).toEqual(item);
    expect(value('n=${{ args.n }}', { args })).toBe('n=3');
  });

  it('leaves out members and items whose hole is empty, and keeps null', () => {
    expect(value({ a: '${{ args.?a }}', b: null, c: ['${{ args.?a }}', 1] }, { args: {} })).toEqual({
      b: null,
      c: [1n],
    });
    expect(value('${{ args.?a }}', { args: {} })).toBeUndefined();
  });

  it('copies everything that holds no hole', () => {
    expect(value({ ref: 'main', n: 1, f: 1.5, ok: true, deep: [{ x: '$x' }] })).toEqual({
      ref: 'main',
      n: 1n,
      f: 1.5,
      ok: true,
      deep: [{ x: '$x' }],
    });
  });

  it('reports a problem with the path of its text', () => {
    expect(compileValue({ a: [{ b: '${{ nope }}' }] }, options).problems).toMatchObject([
      { path: ['a', 0, 'b'], offset: 4 },
    ]);
  });
});
