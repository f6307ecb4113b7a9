// A bound on what one evaluation can cost: the steps are counted over the syntax tree with the sizes of the data,
// before anything runs.

import type { ASTNode } from '@marcbachmann/cel-js';
import { digitsOf, type Json } from '../exact-json.ts';
import type { Scope } from './expression.ts';
import { absorbedFaults } from './expression-faults.ts';
import { loops } from './expression-lint.ts';

/** A step takes 50 to 80 ns when measured, so this is about a quarter of a second. */
const mostSteps = 4_000_000;

/** A fault that the engine absorbs takes about 6 µs. Few of them are not worth a look. */
const stepsPerFault = 100;
const fewTurns = 1_000;

/** Characters that cost as much as one step when text is searched or copied. */
const charactersPerStep = 16;

/** Digits of a long whole number that cost as much as one step when it is written as text. */
const digitsPerStep = 4;

/** Whether evaluating could take more than {@link mostSteps} steps over `scope`. */
export function tooCostly(ast: ASTNode, scope: Scope): boolean {
  const count: Count = { scope, steps: 0, weights: new WeakMap() };
  measure(ast, { count, turns: 1, locals: new Map() });
  return count.steps > mostSteps;
}

interface Count {
  scope: Scope;
  steps: number;
  weights: WeakMap<object, number>;
}

/** What is known about a value before it is there. Sizes are upper bounds; inside loops, of the average turn. */
interface Size {
  kind: 'text' | 'list' | 'map' | 'plain' | 'unknown';
  /** Items of a list, members of a map. */
  length: () => number;
  /** Values in it, and its characters divided by {@link charactersPerStep}. */
  weight: () => number;
  /** The value itself, where it is data that is only read. */
  data?: Json | undefined;
  /** The items of a list, or more than those, where they are data. */
  items?: readonly Json[] | undefined;
}

interface Place {
  count: Count;
  /** How often the node is evaluated. */
  turns: number;
  /** Variables of the loops around. */
  locals: ReadonlyMap<string, Size>;
}

/** They give one of their operands. */
const passing = new Set(['orValue', 'or', 'value', 'of', 'none', 'dyn']);
/** They give a number or a truth. */
const plainResult = new Set(
  'size has hasValue contains startsWith endsWith indexOf lastIndexOf int uint double bool type'.split(' '),
);
const plain: Size = { kind: 'plain', length: () => 0, weight: () => 1 };

/** Counts the steps of `node` and says how large its value can get. */
function measure(node: ASTNode, at: Place): Size {
  spend(1, at);
  switch (node.op) {
    case 'value':
      return typeof node.args === 'string' ? dataSize(node.args, at) : plain;
    case 'id':
      return at.locals.get(node.args) ?? dataSize(member(at.count.scope, node.args), at);
    case '.':
    case '.?':
      return part(measure(node.args[0], at), node.args[1], at);
    case '[]':
    case '[?]': {
      const target = measure(node.args[0], at);
      measure(node.args[1], at);
      return part(target, node.args[1].op === 'value' ? node.args[1].args : undefined, at);
    }
    case 'call':
      return call(
        node.args[0],
        node.args[1].map((argument) => measure(argument, at)),
        at,
      );
    case 'rcall': {
      const [name, targetNode, args] = node.args;
      const target = measure(targetNode, at);
      if (loops.has(name) && args.length > 1) return loop(name, target, args, at);
      return call(name, [target, ...args.map((argument) => measure(argument, at))], at);
    }
    case 'list':
      return made(
        'list',
        node.args.map((item) => measure(item, at)),
      );
    case 'map':
      spend(2 * node.args.length, at);
      return made(
        'map',
        node.args.flat().map((item) => measure(item, at)),
      );
    case '?:':
      measure(node.args[0], at);
      return larger([measure(node.args[1], at), measure(node.args[2], at)]);
    case '!_':
    case '-_':
      measure(node.args, at);
      return plain;
    default: {
      const [left, right] = node.args;
      return binary(node.op, measure(left, at), measure(right, at), at);
    }
  }
}

function loop(name: string, target: Size, [variable, ...bodies]: readonly ASTNode[], at: Place): Size {
  const length = target.length();
  const average = (): number => target.weight() / Math.max(1, length);
  const locals = new Map(at.locals);
  if (variable?.op === 'id') locals.set(variable.args, { kind: 'unknown', length: average, weight: average });
  const results = bodies.map((body) => measure(body, { ...at, locals, turns: at.turns * length }));
  if (length > fewTurns && variable?.op === 'id' && at.count.steps <= mostSteps) {
    const turns = { variable: variable.args, items: target.items, turns: length, scope: at.count.scope };
    const goesOn = name === 'exists' || name === 'all';
    for (const body of bodies) spend(stepsPerFault * absorbedFaults(body, goesOn, turns), at);
  }
  if (name === 'filter')
    return { kind: 'list', length: () => length, weight: target.weight, items: target.items };
  const last = results.at(-1);
  if (name !== 'map' || last === undefined) return plain;
  return { kind: 'list', length: () => length, weight: () => 1 + length * last.weight() };
}

function binary(op: string, left: Size, right: Size, at: Place): Size {
  if (op === '==' || op === '!=') spend(smaller(left, right), at);
  else if (op === 'in') spend(right.kind === 'map' ? 1 : right.weight(), at);
  if (op !== '+' || left.kind === 'plain' || right.kind === 'plain') return plain;
  const weight = (): number => left.weight() + right.weight();
  // Joined text is only put together once it is used.
  if (left.kind === 'text' || right.kind === 'text') return { kind: 'text', length: () => 0, weight };
  spend(copied(left) + copied(right), at);
  const kind = left.kind === 'list' || right.kind === 'list' ? 'list' : 'unknown';
  return { kind, length: () => left.length() + right.length(), weight };
}

function call(name: string, operands: readonly Size[], at: Place): Size {
  const [first = plain, second = plain] = operands;
  if (passing.has(name)) return larger(operands);
  if (name === 'split') return split(first, second, at);
  if (name === 'join') {
    const weight = (): number => first.weight() + first.length() * second.weight();
    spend(weight(), at);
    return { kind: 'text', length: () => 0, weight };
  }
  const weight = (): number => operands.reduce((total, operand) => total + operand.weight(), 0);
  const length = (): number => operands.reduce((total, operand) => total + operand.length(), 0);
  if (name === 'merge') {
    // Measured: a member takes four times as long as an item of a list.
    spend(4 * (copied(first) + copied(second)), at);
    return { kind: 'map', length, weight };
  }
  if (name === 'parseJson') {
    // Every second character may be an item of a list.
    const characters = (): number => first.weight() * charactersPerStep;
    spend(characters(), at);
    return { kind: 'unknown', length: characters, weight: characters };
  }
  if (name === 'toJson') {
    spend(4 * first.weight(), at);
    // Escaped, a character may take six; a number takes up to twenty.
    return { kind: 'text', length: () => 0, weight: () => 6 * first.weight() };
  }
  // Searched from the end, text is compared at every place.
  if (name === 'lastIndexOf') spend(first.weight() * second.weight(), at);
  else if (name === 'size') spend(first.kind === 'list' || first.kind === 'map' ? 1 : first.weight(), at);
  else if (name !== 'has' && name !== 'hasValue') spend(weight(), at);
  return plainResult.has(name) ? plain : { kind: 'unknown', length, weight };
}

function split(text: Size, separator: Size, at: Place): Size {
  const pieces = piecesOf(text, separator);
  spend(pieces / 4 + text.weight(), at);
  return { kind: 'list', length: () => pieces, weight: () => pieces + text.weight() };
}

/** Exact where both texts are known. */
function piecesOf(text: Size, separator: Size): number {
  const { data } = text;
  const mark = separator.data;
  const most = text.weight() * charactersPerStep;
  if (typeof mark !== 'string' || mark === '') return typeof data === 'string' ? data.length + 1 : most;
  if (typeof data !== 'string') return 1 + most / mark.length;
  let pieces = 1;
  for (let from = data.indexOf(mark); from !== -1; from = data.indexOf(mark, from + mark.length)) pieces++;
  return pieces;
}

/** A member or item: exact in data, else at most as large as what it is part of. */
function part(whole: Size, key: unknown, at: Place): Size {
  if ('data' in whole && key !== undefined) return dataSize(member(whole.data, key), at);
  if (whole.kind === 'plain' || whole.kind === 'text') return plain;
  return { kind: 'unknown', length: whole.weight, weight: whole.weight };
}

function member(whole: Json | Scope | undefined, key: unknown): Json | undefined {
  if (typeof whole !== 'object' || whole === null) return undefined;
  if (Array.isArray(whole)) return typeof key === 'bigint' ? whole[Number(key)] : undefined;
  const name = String(key);
  return Object.hasOwn(whole, name) ? (whole as Scope)[name] : undefined;
}

function made(kind: 'list' | 'map', parts: readonly Size[]): Size {
  return {
    kind,
    length: () => parts.length,
    weight: () => parts.reduce((total, item) => total + item.weight(), 1),
  };
}

function larger(sizes: readonly Size[]): Size {
  const kinds = new Set(sizes.filter(({ kind }) => kind !== 'plain').map(({ kind }) => kind));
  const [kind = 'plain'] = kinds;
  return {
    kind: kinds.size > 1 ? 'unknown' : kind,
    length: () => Math.max(0, ...sizes.map((size) => size.length())),
    weight: () => Math.max(1, ...sizes.map((size) => size.weight())),
  };
}

/** What comparing two values reads; a flat one decides at once. */
function smaller(left: Size, right: Size): number {
  const flat = [left, right].find(({ kind }) => kind === 'plain' || kind === 'text');
  return flat === undefined ? Math.min(left.weight(), right.weight()) : flat.weight();
}

/** Lists and maps are copied without what is in their items. */
function copied(size: Size): number {
  return size.kind === 'list' || size.kind === 'map' ? size.length() : size.weight();
}

function dataSize(data: Json | undefined, { count }: Place): Size {
  const weight = (): number => weightOf(data, count.weights);
  if (typeof data === 'string') return { kind: 'text', length: () => 0, weight, data };
  if (typeof data !== 'object' || data === null) return { ...plain, weight, data };
  if (Array.isArray(data)) return { kind: 'list', length: () => data.length, weight, data, items: data };
  const names = (): string[] => Object.keys(data);
  return {
    kind: 'map',
    length: () => names().length,
    weight,
    data,
    // A loop over a map takes its names.
    get items() {
      return names();
    },
  };
}

/** Remembered only for what is asked for: remembering every part takes longer than counting it. */
function weightOf(value: Json | undefined, known: WeakMap<object, number>): number {
  if (typeof value !== 'object' || value === null) return countOf(value);
  const weight = known.get(value) ?? countOf(value);
  known.set(value, weight);
  return weight;
}

function countOf(value: Json | undefined): number {
  if (typeof value === 'string') return 1 + Math.floor(value.length / charactersPerStep);
  if (typeof value === 'bigint') return 1 + Math.floor((digitsOf(value) - 20) / digitsPerStep);
  if (typeof value !== 'object' || value === null) return 1;
  let total = 1;
  if (Array.isArray(value)) for (const item of value) total += countOf(item);
  else for (const name in value) total += countOf(value[name]);
  return total;
}

function spend(steps: number, { count, turns }: Place): void {
  count.steps += steps * turns;
}
