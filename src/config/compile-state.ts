// Compiles `state`: which words or conditions mean which phase, in the order they are tried.

import type { Json } from '../exact-json.ts';
import { type Phase, phaseOrder, type StateRule, type StateRules } from './adapter.ts';
import type { RawState } from './adapter-schema.ts';
import type { FileContext, PlaceCompiler } from './compile-context.ts';
import type { Path } from './driver-format.ts';

export function compileState(
  raw: RawState,
  path: Path,
  compiler: PlaceCompiler,
  context: FileContext,
): StateRules {
  return Array.isArray(raw)
    ? { of: undefined, rules: raw.map((rule, index) => listRule(rule, [...path, index], compiler, context)) }
    : compileMap(raw, path, compiler, context);
}

/** Phases that a reply of this stage can give. */
export function phasesOf(state: StateRules): Set<Phase> {
  return new Set(state.rules.filter((rule) => !('always' in rule) || rule.always).map((rule) => rule.phase));
}

function listRule(
  raw: { phase: Phase; when: string | boolean },
  path: Path,
  compiler: PlaceCompiler,
  context: FileContext,
): StateRule {
  return conditionRule(raw.phase, raw.when, [...path, 'when'], compiler, context);
}

function conditionRule(
  phase: Phase,
  when: string | boolean,
  path: Path,
  compiler: PlaceCompiler,
  context: FileContext,
): StateRule {
  if (typeof when === 'string')
    return { phase, when: compiler.expression(path, when, { want: 'bool' }).expression };
  if (when && phase !== 'working')
    context.warning(path, `${phase}: true holds for every reply, also for one that says nothing`, {
      hint: 'write the condition',
    });
  return { phase, always: when };
}

function compileMap(
  raw: Exclude<RawState, readonly unknown[]>,
  path: Path,
  compiler: PlaceCompiler,
  context: FileContext,
): StateRules {
  const of = raw.of === undefined ? undefined : compiler.expression([...path, 'of'], raw.of).expression;
  if (of?.type.startsWith('optional'))
    context.problem([...path, 'of'], `gives ${of.type}, but a status word is wanted`, {
      hint: 'add .orValue("")',
    });
  checkWords(raw, path, context);
  const rules: StateRule[] = [];
  let lists = 0;
  for (const phase of phaseOrder) {
    const rule = raw[phase];
    if (rule === undefined) continue;
    if (Array.isArray(rule)) {
      lists++;
      rules.push({ phase, words: rule.map(exactWord) });
      if (raw.of === undefined)
        context.problem([...path, phase], 'a list of words needs "of", which says where the word stands', {
          key: true,
        });
    } else rules.push(conditionRule(phase, rule, [...path, phase], compiler, context));
  }
  if (raw.of !== undefined && lists === 0)
    context.problem([...path, 'of'], 'is only for lists of words, and there is none', { key: true });
  return { of, rules };
}

/** In file order, so that the second of two equal words is the one reported. */
function checkWords(raw: Exclude<RawState, readonly unknown[]>, path: Path, context: FileContext): void {
  const seen = new Map<string, string>();
  for (const [phase, rule] of Object.entries(raw)) {
    if (!Array.isArray(rule)) continue;
    for (const [index, word] of rule.entries()) {
      const key = JSON.stringify(word);
      const before = seen.get(key);
      if (before !== undefined)
        context.problem([...path, phase, index], `the word ${key} is already under ${before}`);
      else seen.set(key, phase);
    }
  }
}

/** Words are compared exactly with what the upstream sent, where whole numbers are bigint. */
function exactWord(word: string | number | boolean): Json {
  return typeof word === 'number' && Number.isSafeInteger(word) ? BigInt(word) : word;
}
