// How many faults the turns of one loop can make that the engine absorbs and goes on from: each costs far more than a
// step. Counted before anything runs, on the very data where the loop is over data.

import type { ASTNode } from '@marcbachmann/cel-js';
import type { Json } from '../exact-json.ts';
import type { Scope } from './expression.ts';
import { children } from './expression-tree.ts';

export interface LoopTurns {
  /** Name of the loop's variable. */
  variable: string;
  /** The items, or more than those; undefined when they are not known. */
  items: readonly Json[] | undefined;
  /** How many turns there are at most. */
  turns: number;
  scope: Scope;
}

/**
 * Upper bound of the absorbed faults of all turns. `exists` and `all` go on after a fault of their body; everywhere
 * `||` and `&&` go on after one on their left, and `[?i]` gives nothing for one.
 */
export function absorbedFaults(body: ASTNode, goesOn: boolean, loop: LoopTurns): number {
  const tally = { absorbed: 0, looks: 0 };
  const count: Count = { ...loop, tally, known: new Map() };
  if (goesOn) tally.absorbed += outlook(body, count).faults;
  else absorbedInside(body, count);
  return tally.absorbed;
}

function absorbedInside(node: ASTNode, count: Count): void {
  if (node.op === '||' || node.op === '&&' || node.op === '[?]') outlook(node, count);
  else for (const child of children(node)) absorbedInside(child, count);
}

interface Count extends LoopTurns {
  /** Of the whole loop. `looks`: items that were looked into. */
  tally: { absorbed: number; looks: number };
  /** What was found out about these items already, by the path in them. */
  known: Map<string, Outlook>;
}

/** Looking into an item takes 10 to 30 ns. Beyond, every turn counts as one that may fault. */
const mostLooks = 1_000_000;

/** What a node may give over all turns, and how many of them may fault in it. */
interface Outlook {
  kinds: ReadonlySet<Kind>;
  faults: number;
}

type Kind = 'null' | 'bool' | 'int' | 'double' | 'text' | 'list' | 'map' | 'other';

const bool: ReadonlySet<Kind> = new Set<Kind>(['bool']);
const other: ReadonlySet<Kind> = new Set<Kind>(['other']);
const listOnly: ReadonlySet<Kind> = new Set<Kind>(['list']);
const mapOnly: ReadonlySet<Kind> = new Set<Kind>(['map']);
const textOnly: ReadonlySet<Kind> = new Set<Kind>(['text']);
const intOnly: ReadonlySet<Kind> = new Set<Kind>(['int']);

function outlook(node: ASTNode, count: Count): Outlook {
  const path = pathOf(node);
  if (path !== undefined) return followed(path, count);
  switch (node.op) {
    case 'id':
      return any(count);
    case 'value':
      return { kinds: new Set([kindOf(node.args as Json)]), faults: 0 };
    case '.': {
      const faults = sum([node.args[0]], count);
      return isOptional(node.args[0]) ? { kinds: other, faults } : any(count);
    }
    case '.?':
      return { kinds: other, faults: sum([node.args[0]], count) };
    case '[]':
      sum(node.args, count);
      return any(count);
    case '[?]':
      return optionalItem(node.args, count);
    case '||':
    case '&&':
      return joined(node.args, node.op === '&&', count);
    case '?:':
      return chosen(node.args, count);
    case '!_': {
      const operand = outlook(node.args, count);
      return within(operand, bool) ? { kinds: bool, faults: operand.faults } : any(count, bool);
    }
    case '-_':
      sum([node.args], count);
      return any(count);
    case 'list':
      return { kinds: listOnly, faults: sum(node.args, count) };
    case 'map':
      return { kinds: mapOnly, faults: sum(node.args.flat(), count) };
    case 'call':
      return called(node.args[0], node.args[1], count);
    case 'rcall':
      return called(node.args[0], [node.args[1], ...node.args[2]], count);
    default:
      return operated(node.op, node.args, count);
  }
}

/** Every turn may fault. */
function any({ turns }: Count, kinds: ReadonlySet<Kind> = other): Outlook {
  return { kinds, faults: turns };
}

function sum(nodes: readonly ASTNode[], count: Count): number {
  return capped(
    nodes.reduce((total, node) => total + outlook(node, count).faults, 0),
    count,
  );
}

function capped(faults: number, { turns }: Count): number {
  return Math.min(faults, turns);
}

function within({ kinds }: Outlook, allowed: ReadonlySet<Kind>): boolean {
  return kinds.isSubsetOf(allowed);
}

function joined([first, second]: readonly [ASTNode, ASTNode], and: boolean, count: Count): Outlook {
  const left = outlook(first, count);
  const right = outlook(second, where(first, and, count));
  count.tally.absorbed += left.faults;
  const fit = within(left, bool) && within(right, bool);
  return { kinds: bool, faults: fit ? capped(left.faults + right.faults, count) : count.turns };
}

function chosen([condition, first, second]: readonly [ASTNode, ASTNode, ASTNode], count: Count): Outlook {
  const test = outlook(condition, count);
  const yes = outlook(first, where(condition, true, count));
  const no = outlook(second, where(condition, false, count));
  const faults = within(test, bool) ? test.faults + yes.faults + no.faults : count.turns;
  return { kinds: yes.kinds.union(no.kinds), faults: capped(faults, count) };
}

/** The turns in which `condition` may be `wanted`: what stands behind a test is not evaluated in the others. */
function where(condition: ASTNode, wanted: boolean, count: Count): Count {
  if (count.items === undefined || count.tally.looks > mostLooks) return count;
  count.tally.looks += count.items.length;
  const items = count.items.filter((item) => (truth(condition, item, count) ?? wanted) === wanted);
  return items.length === count.items.length
    ? count
    : { ...count, items, turns: items.length, known: new Map() };
}

/** Undefined where it can't be told without evaluating. */
function truth(node: ASTNode, item: Json, count: Count): boolean | undefined {
  switch (node.op) {
    case '!_': {
      const inner = truth(node.args, item, count);
      return inner === undefined ? undefined : !inner;
    }
    case '&&':
    case '||': {
      const deciding = node.op === '||';
      const sides = node.args.map((side) => truth(side, item, count));
      if (sides.includes(deciding)) return deciding;
      return sides.includes(undefined) ? undefined : !deciding;
    }
    case '==':
    case '!=': {
      const [left, right] = node.args.map((side) => plainValue(side, item, count));
      if (left === undefined || right === undefined) return undefined;
      return (left === right) === (node.op === '==');
    }
    case 'call':
      if (node.args[0] !== 'has' || node.args[1][0] === undefined) return undefined;
      return isThere(node.args[1][0], item, count);
    default: {
      const value = plainValue(node, item, count);
      return typeof value === 'boolean' ? value : undefined;
    }
  }
}

function isThere(node: ASTNode, item: Json, count: Count): boolean | undefined {
  const path = pathOf(node);
  return path?.root === count.variable ? follow(item, path.steps) !== undefined : undefined;
}

/** A number is left out, as the engine also compares whole ones with others. */
function plainValue(node: ASTNode, item: Json, count: Count): string | bigint | boolean | null | undefined {
  const path = pathOf(node);
  let value: unknown;
  if (node.op === 'value') value = node.args;
  else if (path !== undefined)
    value = follow(path.root === count.variable ? item : count.scope[path.root], path.steps);
  return typeof value === 'string' ||
    typeof value === 'bigint' ||
    typeof value === 'boolean' ||
    value === null
    ? value
    : undefined;
}

function operated(op: string, nodes: readonly [ASTNode, ASTNode], count: Count): Outlook {
  const [left, right] = nodes.map((node) => outlook(node, count)) as [Outlook, Outlook];
  const inner = capped(left.faults + right.faults, count);
  const both = left.kinds.union(right.kinds);
  const alike = (kinds: readonly Kind[]): boolean => both.isSubsetOf(new Set(kinds));
  switch (op) {
    case '==':
    case '!=':
      return { kinds: bool, faults: inner };
    case 'in':
      return right.kinds.isSubsetOf(new Set<Kind>(['list', 'map']))
        ? { kinds: bool, faults: inner }
        : any(count, bool);
    case '<':
    case '<=':
    case '>':
    case '>=':
      return alike(['text']) || alike(['int', 'double']) ? { kinds: bool, faults: inner } : any(count, bool);
    case '+':
      return alike(['text']) || alike(['double']) ? { kinds: both, faults: inner } : any(count);
    case '%':
    case '/':
      return alike(['int']) && nodes[1].op === 'value' && nodes[1].args !== 0n
        ? { kinds: intOnly, faults: inner }
        : any(count);
    default:
      return any(count);
  }
}

const ofText = new Set(['startsWith', 'endsWith', 'contains']);
const textToText = new Set(['lowerAscii', 'upperAscii', 'trim']);
const countable: ReadonlySet<Kind> = new Set<Kind>(['text', 'list', 'map']);
const writable: ReadonlySet<Kind> = new Set<Kind>(['text', 'bool', 'int', 'double']);

function called(name: string, nodes: readonly ASTNode[], count: Count): Outlook {
  const [first] = nodes;
  if (name === 'has' && first?.op === '.') return { kinds: bool, faults: sum([first.args[0]], count) };
  const operands = nodes.map((node) => outlook(node, count));
  const faults = capped(
    operands.reduce((total, operand) => total + operand.faults, 0),
    count,
  );
  const all = (kinds: ReadonlySet<Kind>): boolean => operands.every((operand) => within(operand, kinds));
  if (ofText.has(name) && all(textOnly)) return { kinds: bool, faults };
  if (textToText.has(name) && all(textOnly)) return { kinds: textOnly, faults };
  if (name === 'size' && all(countable)) return { kinds: intOnly, faults };
  if (name === 'string' && all(writable)) return { kinds: textOnly, faults };
  if (name === 'hasValue' && first && isOptional(first)) return { kinds: bool, faults };
  if (name === 'orValue' && first && isOptional(first)) return { kinds: other, faults };
  return any(count);
}

/** An index that a list doesn't have is a fault inside; a name that a map doesn't have is none. */
function optionalItem([target, index]: readonly [ASTNode, ASTNode], count: Count): Outlook {
  const whole = outlook(target, count);
  const faults = capped(whole.faults + sum([index], count), count);
  const named = index.op === 'value' && typeof index.args === 'string';
  if (!named && !within(whole, mapOnly)) count.tally.absorbed += count.turns;
  return { kinds: other, faults };
}

function isOptional(node: ASTNode): boolean {
  if (node.op === '.?' || node.op === '[?]') return true;
  return (node.op === '.' || node.op === '[]') && isOptional(node.args[0]);
}

/** A name and the members and items read from it. */
type Path = { root: string; steps: readonly (string | bigint)[] };

function pathOf(node: ASTNode): Path | undefined {
  if (node.op === 'id') return { root: node.args, steps: [] };
  if (node.op !== '.' && node.op !== '[]') return undefined;
  const step = node.op === '.' ? node.args[1] : node.args[1].op === 'value' ? node.args[1].args : undefined;
  const before = pathOf(node.args[0]);
  if (before === undefined || (typeof step !== 'string' && typeof step !== 'bigint')) return undefined;
  return { root: before.root, steps: [...before.steps, step] };
}

function followed({ root, steps }: Path, count: Count): Outlook {
  if (root !== count.variable) {
    const end = follow(count.scope[root], steps);
    return end === undefined ? any(count) : { kinds: new Set([kindOf(end)]), faults: 0 };
  }
  if (count.items === undefined || count.tally.looks > mostLooks)
    return { kinds: other, faults: steps.length === 0 ? 0 : count.turns };
  const key = JSON.stringify(steps.map(String));
  const known = count.known.get(key);
  if (known !== undefined) return known;
  count.tally.looks += count.items.length;
  const kinds = new Set<Kind>();
  let faults = 0;
  for (const item of count.items) {
    const end = follow(item, steps);
    if (end === undefined) faults++;
    else kinds.add(kindOf(end));
  }
  const found = { kinds, faults: capped(faults, count) };
  count.known.set(key, found);
  return found;
}

function follow(value: Json | undefined, steps: readonly (string | bigint)[]): Json | undefined {
  let current = value;
  for (const step of steps) {
    if (typeof current !== 'object' || current === null) return undefined;
    if (Array.isArray(current)) current = typeof step === 'bigint' ? current[Number(step)] : undefined;
    else current = typeof step === 'string' && Object.hasOwn(current, step) ? current[step] : undefined;
  }
  return current;
}

function kindOf(value: Json): Kind {
  switch (typeof value) {
    case 'string':
      return 'text';
    case 'bigint':
      return 'int';
    case 'number':
      return 'double';
    case 'boolean':
      return 'bool';
    default:
      return value === null
        ? 'null'
        : Array.isArray(value)
          ? 'list'
          : value instanceof Uint8Array
            ? 'other'
            : 'map';
  }
}
