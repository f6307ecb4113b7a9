// Compiling `upstream.login`: requests made before others, what they capture, and how long it holds.

import { captureOf } from '../../config/compile-capture.ts';
import { itemsOf } from '../../config/compile-step.ts';
import type { Compiler, Path } from '../../config/driver-format.ts';
import { response } from '../../config/tool-names.ts';
import { durationPattern, parseDuration } from '../../config/units.ts';
import { compileStep } from './compile-step.ts';
import type { HttpLogin, LoginStep } from './compiled.ts';
import { loginNames } from './credential-names.ts';
import type { RawLogin } from './shape-login.ts';

const mostSteps = 10;

type RawLoginStep = Extract<NonNullable<RawLogin['login']>, { request: string }>;

export function compileLogin(raw: RawLogin, compiler: Compiler): HttpLogin | undefined {
  const steps: LoginStep[] = [];
  for (const { item, at } of itemsOf<RawLoginStep>(raw.login, ['login']))
    steps.push(compileLoginStep(item, at, steps, compiler));
  const renewOn =
    raw.renewOn === undefined
      ? undefined
      : compiler.within([], { reply: { response } }).expression(['renewOn'], raw.renewOn, 'bool');
  if (raw.login === undefined) {
    if (renewOn !== undefined) compiler.problem(['renewOn'], 'needs login, which is what it makes anew');
    return undefined;
  }
  if (steps.length > mostSteps)
    compiler.problem(['login', mostSteps], `a login has at most ${mostSteps} steps`);
  if (steps.every(({ capture }) => capture.length === 0))
    compiler.problem(['login'], 'captures nothing that requests could send', 'add capture');
  return { steps, renewOn };
}

function compileLoginStep(
  raw: RawLoginStep,
  at: Path,
  before: readonly LoginStep[],
  compiler: Compiler,
): LoginStep {
  const index = at.at(-1);
  const earlier = loginNames(before);
  const reader = compiler.within(at, { reply: { response, ...earlier } });
  const capture = Object.entries(raw.capture ?? {}).map(([key, source]) => {
    const { name, optional } = captureOf(key);
    const twin = before.some((step) => step.capture.some((known) => known.name === name));
    if (twin || (optional && Object.hasOwn(raw.capture ?? {}, name)))
      compiler.problem([...at, 'capture', key], `"${name}" is captured twice`);
    return { name, optional, value: reader.expression(['capture', key], source) };
  });
  return {
    name: raw.step ?? (typeof index === 'number' ? `login[${index}]` : 'login'),
    request: compileStep(raw, compiler.within(at, { sent: earlier }), 'login'),
    expect: raw.expect === undefined ? undefined : reader.expression(['expect'], raw.expect, 'bool'),
    capture,
    expires: raw.expires === undefined ? undefined : compileExpires(raw.expires, reader),
  };
}

/** A duration is no CEL, so that one field can hold either. */
function compileExpires(source: string, reader: Compiler): LoginStep['expires'] {
  if (!durationPattern.test(source)) return reader.expression(['expires'], source);
  const ms = parseDuration(source) ?? 0;
  if (ms < 1000 || ms > 86_400_000) reader.problem(['expires'], 'must be between 1s and 1d');
  return ms;
}
