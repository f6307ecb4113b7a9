// The guards over an expression's syntax tree: no regular expressions, no loop in a loop, no bind, and only
// names that may be read at that place.

import type { ASTNode } from '@marcbachmann/cel-js';
import { suggestion } from './did-you-mean.ts';
import type { CompileOptions, ExpressionProblem } from './expression.ts';
import { type Member, type Shape, secretRoots } from './expression-names.ts';
import { children } from './expression-tree.ts';

export interface NameUse {
  problems: ExpressionProblem[];
  /** `args.owner`, `job.id`; a root alone when all of it is read or its members are not known. */
  reads: Set<string>;
  /** Roots that are read as one value. */
  whole: Set<string>;
  /** Names that are there whenever the expression is true: `has()` by itself or joined by `&&`. */
  tested: Set<string>;
}

/** Macros that evaluate their last argument for each member of a list or map. */
export const loops: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);
/** Every root there is, so that a known name in the wrong place gets a better message than a typo. */
const allRoots = [
  'args',
  'job',
  'task',
  'confirm',
  'env',
  ...secretRoots,
  'response',
  'fetched',
  'item',
  'answer',
  'page',
];

/** Walks the tree once and reports everything the type checker doesn't know about. */
export function lintExpression(ast: ASTNode, options: CompileOptions): NameUse {
  const use: NameUse = { problems: [], reads: new Set(), whole: new Set(), tested: new Set() };
  collectProven(ast, use.tested);
  // Inside the expression any test counts: `!has(x) || x == 1` is as good as `has(x) && x == 1`.
  const anywhere = new Set<string>();
  collectTested(ast, anywhere);
  const certain = (name: string): boolean => anywhere.has(name) || options.present?.has(name) === true;
  walk(ast, { options, use, certain, locals: new Set(), inLoop: false });
  return use;
}

interface Walk {
  options: CompileOptions;
  use: NameUse;
  certain: (name: string) => boolean;
  /** Variables of the loops around. */
  locals: ReadonlySet<string>;
  inLoop: boolean;
}

function walk(node: ASTNode, at: Walk): void {
  const chain = accessChain(node);
  if (chain !== undefined && !at.locals.has(chain.root)) checkName(chain, at, false);
  else if (node.op === 'call') walkCall(node, node.args[0], node.args[1], at);
  else if (node.op === 'rcall') walkMethod(node, node.args[0], node.args[1], node.args[2], at);
  else {
    if (node.op === 'in') checkHeaderTest(node.args, at);
    if (node.op === 'map') for (const [key] of node.args) checkKey(key, at);
    for (const child of children(node)) walk(child, at);
  }
}

/** The engine leaves these keys out of `{ }`. */
const lostKeys = new Set<unknown>(['constructor', 'prototype', '__proto__']);

function checkKey(key: ASTNode, at: Walk): void {
  if (key.op !== 'value' || !lostKeys.has(key.args)) return;
  const name = JSON.stringify(key.args);
  const hint = `write fromEntries([{"key": ${name}, "value": …}])`;
  report(at, key.start, `a map that is written out can't have the key ${name}`, hint);
}

/** `"Location" in response.headers`. */
function checkHeaderTest([name, whole]: readonly [ASTNode, ASTNode], at: Walk): void {
  const chain = accessChain(whole);
  if (chain === undefined || at.locals.has(chain.root) || name.op !== 'value') return;
  if (typeof name.args !== 'string') return;
  checkHeaderName(
    { ...chain, steps: [...chain.steps, { name: name.args, optional: false, offset: name.start }] },
    at,
  );
}

function walkCall(node: ASTNode, name: string, args: readonly ASTNode[], at: Walk): void {
  const chain = name === 'has' && args[0] !== undefined ? accessChain(args[0]) : undefined;
  if (chain !== undefined && !at.locals.has(chain.root)) {
    checkName(chain, at, true);
    return;
  }
  refuseRegex(node, name, at);
  if (name === 'resolveUrl' && !at.options.resolveUrl) {
    const fix = 'capture the resolved URL, then use the capture';
    report(at, node.start, 'resolveUrl() can only be used in a capture', fix);
  }
  for (const argument of args) walk(argument, at);
}

function walkMethod(node: ASTNode, name: string, target: ASTNode, args: readonly ASTNode[], at: Walk): void {
  if (target.op === 'id' && target.args === 'cel') {
    report(at, node.start, 'cel.bind() is not available', 'write the value twice, or capture it first');
    return;
  }
  refuseRegex(node, name, at);
  // `optional.of(x)` and `optional.none()`: the namespace is no name of ours.
  if (!(target.op === 'id' && target.args === 'optional')) walk(target, at);
  if (!loops.has(name) || args.length < 2) {
    for (const argument of args) walk(argument, at);
    return;
  }
  if (at.inLoop) {
    report(
      at,
      node.start,
      `${name}() inside another loop is not available`,
      'loops may follow each other, not nest',
    );
    return;
  }
  const [variable, ...bodies] = args;
  const locals = new Set(at.locals);
  if (variable?.op === 'id') locals.add(variable.args);
  for (const body of bodies) walk(body, { ...at, locals, inLoop: true });
}

function refuseRegex(node: ASTNode, name: string, at: Walk): void {
  if (name !== 'matches') return;
  const hint = 'use startsWith, endsWith, contains, split or lastSegment';
  report(at, node.start, 'matches() is not available: a regular expression can run for minutes', hint);
}

interface Chain {
  root: string;
  rootStart: number;
  steps: { name: string; optional: boolean; offset: number }[];
}

/** `args.a["b"].?c` as root and steps; undefined when it doesn't start at a name or has a computed index. */
function accessChain(node: ASTNode): Chain | undefined {
  switch (node.op) {
    case 'id':
      return { root: node.args, rootStart: node.start, steps: [] };
    case '.':
    case '.?': {
      const chain = accessChain(node.args[0]);
      const name = node.args[1];
      chain?.steps.push({ name, optional: node.op === '.?', offset: node.end - name.length });
      return chain;
    }
    case '[]':
    case '[?]': {
      const [target, index] = node.args;
      if (index.op !== 'value' || typeof index.args !== 'string') return undefined;
      const chain = accessChain(target);
      chain?.steps.push({ name: index.args, optional: node.op === '[?]', offset: index.start });
      return chain;
    }
    default:
      return undefined;
  }
}

function checkName(chain: Chain, at: Walk, tested: boolean): void {
  const { names } = at.options;
  let shape: Shape | undefined = Object.hasOwn(names, chain.root) ? names[chain.root] : undefined;
  if (shape === undefined) {
    reportRoot(chain, at);
    return;
  }

  checkHeaderName(chain, at);
  const [first] = chain.steps;
  if (shape.kind === 'any' || first === undefined || chain.root === 'response') at.use.reads.add(chain.root);
  else at.use.reads.add(`${chain.root}.${first.name}`);
  if (first === undefined) {
    at.use.whole.add(chain.root);
    if (chain.root === 'secrets')
      report(at, chain.rootStart, 'secrets can only be read one by one', 'write secrets.NAME');
  }

  let path = chain.root;
  let optional = false;
  for (const [index, step] of chain.steps.entries()) {
    if (shape === undefined || shape.kind === 'any') return;
    const member: Member | undefined = Object.hasOwn(shape.members, step.name)
      ? shape.members[step.name]
      : undefined;
    if (member === undefined) {
      if (!shape.open) reportMember(path, step, shape, at);
      return;
    }
    path = `${path}.${step.name}`;
    optional ||= step.optional || (tested && index === chain.steps.length - 1);
    if (!member.certain && !optional && !at.certain(path)) {
      report(
        at,
        step.offset,
        `${path} may be missing here`,
        member.fix ?? `read it as ${optionalForm(path)}`,
      );
      return;
    }
    shape = member.shape;
  }
}

/** Replies have their header names in lower case, so any other spelling is never there. */
function checkHeaderName({ root, steps }: Chain, at: Walk): void {
  const [headers, header] = steps;
  if (root !== 'response' || headers?.name !== 'headers' || header === undefined) return;
  const lower = header.name.toLowerCase();
  if (header.name === lower) return;
  const quoted = `[${header.optional ? '?' : ''}"${lower}"]`;
  const access = /^[a-z]\w*$/.test(lower) ? `${header.optional ? '.?' : '.'}${lower}` : quoted;
  report(at, header.offset, 'header names are in lower case here', `write response.headers${access}`);
}

function optionalForm(path: string): string {
  const cut = path.lastIndexOf('.');
  return `${path.slice(0, cut)}.?${path.slice(cut + 1)}`;
}

function reportRoot(chain: Chain, at: Walk): void {
  const here = Object.entries(at.options.names)
    .filter(([root, shape]) => !secretRoots.includes(root) || !isEmpty(shape))
    .map(([root]) => root);
  const list = `here: ${here.join(', ')}`;
  const message = allRoots.includes(chain.root)
    ? `"${chain.root}" can't be read here`
    : `unknown name "${chain.root}"${suggestion(chain.root, here)}`;
  const hint = secretRoots.includes(chain.root)
    ? `${chain.root === 'secrets' ? 'secrets are' : `${chain.root} is`} only for what is sent upstream, and never for a path`
    : list;
  report(at, chain.rootStart, message, hint);
}

function isEmpty(shape: Shape): boolean {
  return shape.kind === 'members' && Object.keys(shape.members).length === 0;
}

function reportMember(
  path: string,
  step: { name: string; offset: number },
  shape: Extract<Shape, { kind: 'members' }>,
  at: Walk,
): void {
  const known = Object.keys(shape.members);
  const near = suggestion(step.name, known);
  const hint = near === '' ? shape.declare : undefined;
  report(at, step.offset, `${path} has no "${step.name}"${near}`, hint);
}

function collectProven(node: ASTNode, proven: Set<string>): void {
  if (node.op === '&&') for (const side of node.args) collectProven(side, proven);
  else if (node.op === 'call' && node.args[0] === 'has') collectTested(node, proven);
}

function collectTested(node: ASTNode, tested: Set<string>): void {
  if (node.op === 'call' && node.args[0] === 'has' && node.args[1][0] !== undefined) {
    const chain = accessChain(node.args[1][0]);
    if (chain === undefined) return;
    let path = chain.root;
    for (const step of chain.steps) {
      path = `${path}.${step.name}`;
      tested.add(path);
    }
    return;
  }
  for (const child of children(node)) collectTested(child, tested);
}

function report(at: Walk, offset: number, message: string, hint?: string): void {
  at.use.problems.push(hint === undefined ? { offset, message } : { offset, message, hint });
}
