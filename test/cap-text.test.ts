// The cap on text for people.

import { describe, expect, it } from 'vitest';
import { capText } from '../src/cap-text.ts';

describe('capped text', () => {
  it('stays as it is up to the limit', () => {
    expect(capText('abc', 3)).toBe('abc');
    expect(capText('😀😀😀', 3)).toBe('😀😀😀');
  });

  it('is cut to the limit with an ellipsis, never inside a character', () => {
    expect(capText('abcd', 3)).toBe('ab…');
    expect(capText('😀😀😀😀', 3)).toBe('😀😀…');
    expect(capText('a😀', 1)).toBe('…');
  });

  it('is nothing when there is no room', () => {
    expect(capText('a', 0)).toBe('');
  });
});
