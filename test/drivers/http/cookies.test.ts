// Which cookies a reply sets.

import { expect, test } from 'vitest';
import { cookiesOf } from '../../../src/drivers/http/cookies.ts';

const now = Date.UTC(2026, 0, 1);

test.each([
  [undefined, {}],
  ['sid=abc; Path=/; HttpOnly', { sid: 'abc' }],
  [['a=1', 'b="x=y"; Secure'], { a: '1', b: '"x=y"' }],
  [['a=1', 'a=2'], { a: '2' }],
  [['a=1', 'a=; Max-Age=0'], {}],
  ['a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT', {}],
  ['a=1; Expires=Fri, 01-Jan-2027 00:00:00 GMT', { a: '1' }],
  ['a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60', { a: '1' }],
  ['=nameless', {}],
  ['no pair', {}],
  ['empty=', { empty: '' }],
])('%j sets %j', (lines, cookies) => {
  expect(cookiesOf(lines, now)).toEqual(cookies);
});
