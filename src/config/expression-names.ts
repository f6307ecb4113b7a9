// What an expression may read at one place of the file, and the CEL types that the checker derives from it.

import type { Environment } from '@marcbachmann/cel-js';
import { newEngine } from './expression-engine.ts';

/** Roots that may be read at a place. */
export interface Names {
  readonly [root: string]: Shape;
}

export type Shape =
  /** Anything: only known at run time. */
  | { kind: 'any' }
  /** A map with known members. */
  | {
      kind: 'members';
      members: { readonly [name: string]: Member };
      /** Other members may exist (`additionalProperties`). */
      open: boolean;
      /** How to make a member exist, for messages: `declare it under input.properties`. */
      declare: string;
    };

export interface Member {
  /** CEL type: `string`, `int`, `double`, `bool`, `list<string>`, `map<string, dyn>`, `dyn`. */
  type: string;
  /** False: may be missing, so it is read with `.?` or after `has()`. */
  certain: boolean;
  /** What to do about a member that may be missing. */
  fix?: string;
  /** Known members of an object. */
  shape?: Shape;
}

/** Roots whose values are never shown: secrets, and the credentials that a driver makes with them. */
export const secretRoots = ['secrets', 'login', 'jwt'];

/** Whether one of the dotted names is a secret, or all secrets. */
export function readsSecret(reads: Iterable<string>): boolean {
  for (const name of reads) if (secretRoots.includes(rootOf(name))) return true;
  return false;
}

/** Whether one of the dotted names lies under `root`. */
export function readsRoot(reads: Iterable<string>, root: string): boolean {
  for (const name of reads) if (rootOf(name) === root) return true;
  return false;
}

function rootOf(name: string): string {
  const dot = name.indexOf('.');
  return dot < 0 ? name : name.slice(0, dot);
}

const environments = new WeakMap<Names, Map<string, Environment>>();

/**
 * The environment for checking types. A root that is read as a whole is a plain map there: the engine can't
 * use a map with known members as one value.
 */
export function checkingEnvironment(names: Names, whole: ReadonlySet<string>): Environment {
  let known = environments.get(names);
  if (!known) {
    known = new Map();
    environments.set(names, known);
  }
  const key = [...whole].sort().join();
  let found = known.get(key);
  if (!found) {
    found = build(names, whole);
    known.set(key, found);
  }
  return found;
}

function build(names: Names, whole: ReadonlySet<string>): Environment {
  const environment = newEngine();
  for (const [root, shape] of Object.entries(names)) {
    if (shape.kind === 'any') environment.registerVariable(root, 'dyn');
    else if (shape.open || whole.has(root) || Object.keys(shape.members).length === 0)
      environment.registerVariable(root, 'map');
    else environment.registerVariable(root, { schema: typesOf(shape.members) });
  }
  return environment;
}

function typesOf(members: { readonly [name: string]: Member }): { [name: string]: string } {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, member.type]));
}
