/**
 * The same change to the same object gives the same object again. Millions of states share a few thousand objects this
 * way, and comparing them costs next to nothing.
 */
const made = new WeakMap<object, Map<string, object>>();

/** What `make` gave the first time for this object and change. */
export function once<T extends object>(of: object, change: string, make: () => T): T {
  let results = made.get(of);
  if (results === undefined) made.set(of, (results = new Map()));
  let result = results.get(change);
  if (result === undefined) results.set(change, (result = make()));
  return result as T;
}
