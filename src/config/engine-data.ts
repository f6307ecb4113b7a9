// Data as the CEL engine can tell its type: it looks at `constructor`, which JSON may have as a member of its own.

import type { Json } from '../exact-json.ts';
import type { Scope } from './expression.ts';

/** JSON, in which an object that has a member `constructor` is a Map. */
type EngineData = Json | ReadonlyMap<string, EngineData> | EngineData[] | { [name: string]: EngineData };

/** `scope` with such objects as Maps, which the engine takes for maps as well; all else is passed on as it is. */
export function engineScope(scope: Scope): { [root: string]: unknown } {
  const result: { [root: string]: unknown } = {};
  for (const root in scope) {
    const value = scope[root];
    result[root] = value === undefined ? undefined : forEngine(value, remembered);
  }
  return result;
}

/** An object that the engine takes for a map, whatever its members are called. */
export function engineMap(entries: Iterable<readonly [string, unknown]>): object {
  const map = new Map(entries);
  return map.has('constructor') ? map : Object.fromEntries(map);
}

/** Parts of roots that were looked through: a reply is read by many expressions. Data never changes. */
const known = new WeakMap<object, EngineData>();

function remembered(value: Json): EngineData {
  if (typeof value !== 'object' || value === null) return value;
  const found = known.get(value);
  if (found !== undefined) return found;
  const made = forEngine(value);
  known.set(value, made);
  return made;
}

/** Nothing is copied on the way to the first such object. */
function forEngine(value: Json, inner: (value: Json) => EngineData = forEngine): EngineData {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    let items: EngineData[] | undefined;
    for (let i = 0; i < value.length; i++) {
      const item = value[i] as Json;
      const made = inner(item);
      if (made === item) continue;
      items ??= [...value];
      items[i] = made;
    }
    return items ?? value;
  }
  let changed: Map<string, EngineData> | undefined;
  for (const name in value) {
    const item = value[name] as Json;
    const made = inner(item);
    if (made === item) continue;
    changed ??= new Map(Object.entries(value));
    changed.set(name, made);
  }
  if (Object.hasOwn(value, 'constructor')) return changed ?? new Map(Object.entries(value));
  return changed === undefined ? value : Object.fromEntries(changed);
}
