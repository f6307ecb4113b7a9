// The Link header, as servers write it.

import { describe, expect, it } from 'vitest';
import { compileExpression, type Scope } from '../../src/config/expression.ts';
import { linkTarget } from '../../src/config/link-header.ts';

describe('a Link header', () => {
  it.each<[string, string | undefined]>([
    [
      '<https://a.test/x?page=2>; rel="next", <https://a.test/x?page=9>; rel="last"',
      'https://a.test/x?page=2',
    ],
    ['<https://a.test/x?page=1>; rel="prev", </x?page=3>; rel=next', '/x?page=3'],
    ['</2>;rel="first next"', '/2'],
    ['</2>; REL=Next; title="a, b; c"', '/2'],
    ['</1>; title="<no>; rel=\\"next\\""; rel="prev", </2>; rel="next"', '/2'],
    ['</a,b;c>; rel="next"', '/a,b;c'],
    ['</1>; rel=prev; rel=next', undefined],
    ['</1>; rel="next"; anchor="#x"', undefined],
    ['</1>; rel="nextish"', undefined],
    ['<>; rel=next', ''],
    ['</1> ; rel = "next" ;', '/1'],
    ['</1>; rel="next', undefined],
    ['/1; rel=next', undefined],
    ['', undefined],
    [', ,', undefined],
  ])('%j', (header, expected) => {
    expect(linkTarget(header, 'next')).toBe(expected);
  });

  it('of any length is read fast', () => {
    const started = performance.now();
    linkTarget(`${'</x>; rel="a"; '.repeat(100_000)}`, 'next');
    linkTarget(`<x>${'; a'.repeat(100_000)}`, 'next');
    linkTarget(`<x>; a="${'\\'.repeat(100_000)}`, 'next');
    // Linear work takes milliseconds; work that grows with the square would take minutes.
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});

describe('linkHeader', () => {
  const evaluate = (source: string, scope: Scope) => {
    const { expression, problems } = compileExpression(source, { names: { response: { kind: 'any' } } });
    expect(problems).toEqual([]);
    return expression?.evaluate(scope);
  };
  const response = { headers: { link: '</2>; rel="next"' } };

  it('gives the target of a relation, and nothing without one or without the header', () => {
    expect(evaluate('linkHeader(response.headers.link, "next")', { response })).toBe('/2');
    expect(evaluate('linkHeader(response.headers.?link, "next")', { response })).toBe('/2');
    expect(evaluate('linkHeader(response.headers.?link, "last")', { response })).toBeUndefined();
    expect(
      evaluate('linkHeader(response.headers.?link, "next")', { response: { headers: {} } }),
    ).toBeUndefined();
    expect(evaluate('linkHeader(response.headers.link, "last").orValue("none")', { response })).toBe('none');
  });
});
