import { type KubeObject, objectKey } from "./resources.ts";

/**
 * What is known of one resource: objects by key, small indexes, and handlers told of each change after it was made.
 * Objects are shared, not copied: whoever reads must not write into them.
 */
export interface StoreHandlers<T> {
  added?(object: T): void;
  updated?(object: T, old: T): void;
  /** With the last state known: what happened between it and the deletion is not. */
  deleted?(object: T): void;
}

/** Values under which an object is to be found. */
export type IndexFunction<T> = (object: T) => string | readonly string[] | undefined;

export interface Store<T extends KubeObject = KubeObject> {
  get(key: string): T | undefined;
  list(): T[];
  keys(): IterableIterator<string>;
  readonly size: number;
  /** RangeError when there is no index of that name. */
  by(index: string, value: string): readonly T[];
  /** The first list is complete. Stays true while the server is away: then `freshAsOf` tells. */
  hasSynced(): boolean;
  /**
   * Monotonic ms at which the store surely showed everything: of a list, when it was sent; of a watch, when its last
   * event or bookmark came. -Infinity before the first list.
   */
  freshAsOf(): number;
  /** `added` is called at once for what is already there. Returns what ends it. */
  subscribe(handlers: StoreHandlers<T>): () => void;
}

/** The side of a store that only its reflector holds. */
export interface StoreWriter<T extends KubeObject> {
  /** A complete list: what it lacks is deleted. */
  replace(objects: readonly T[], asOf: number): void;
  put(object: T): void;
  remove(object: T): void;
  fresh(asOf: number): void;
}

/** Objects by the uid of each owner. */
export function ownerUidIndex(object: KubeObject): string[] {
  return (object.metadata.ownerReferences ?? []).map((owner) => owner.uid);
}

/** Objects by the value of a label. */
export function labelIndex(label: string): IndexFunction<KubeObject> {
  return (object) => object.metadata.labels?.[label];
}

export interface StoreOptions<T extends KubeObject> {
  indexes?: Record<string, IndexFunction<T>>;
  /** A handler threw; the others are called all the same. */
  onHandlerError: (error: unknown) => void;
}

type Index<T> = Map<string, Map<string, T>>;

export function createStore<T extends KubeObject>({
  indexes: functions = {},
  onHandlerError,
}: StoreOptions<T>): { store: Store<T>; writer: StoreWriter<T> } {
  const objects = new Map<string, T>();
  const indexes = new Map<string, Index<T>>(
    Object.keys(functions).map((name) => [name, new Map<string, Map<string, T>>()]),
  );
  const subscribers = new Set<StoreHandlers<T>>();
  let synced = false;
  let freshAsOf = -Infinity;

  function eachIndexed(object: T, visit: (index: Index<T>, value: string) => void): void {
    for (const [name, index] of indexes) {
      const values = functions[name]?.(object) ?? [];
      for (const value of typeof values === "string" ? [values] : values) visit(index, value);
    }
  }

  function index(key: string, object: T): void {
    eachIndexed(object, (into, value) => {
      let group = into.get(value);
      if (group === undefined) into.set(value, (group = new Map<string, T>()));
      group.set(key, object);
    });
  }

  function unindex(key: string, object: T): void {
    eachIndexed(object, (from, value) => {
      const group = from.get(value);
      group?.delete(key);
      if (group?.size === 0) from.delete(value);
    });
  }

  function tell(subscriber: StoreHandlers<T>, call: (handlers: StoreHandlers<T>) => void): void {
    try {
      call(subscriber);
    } catch (error) {
      onHandlerError(error);
    }
  }

  function tellAll(call: (handlers: StoreHandlers<T>) => void): void {
    for (const subscriber of subscribers) tell(subscriber, call);
  }

  function put(object: T): void {
    const key = objectKey(object);
    const old = objects.get(key);
    if (old === undefined) {
      set(key, object);
      tellAll((handlers) => handlers.added?.(object));
      return;
    }
    if (old.metadata.uid !== object.metadata.uid) {
      // Deleted and created anew while nobody looked: two objects, not a change of one.
      removeKey(key);
      put(object);
      return;
    }
    if (old.metadata.resourceVersion === object.metadata.resourceVersion) return;
    unindex(key, old);
    set(key, object);
    tellAll((handlers) => handlers.updated?.(object, old));
  }

  function set(key: string, object: T): void {
    objects.set(key, object);
    index(key, object);
  }

  function removeKey(key: string, last?: T): void {
    const old = objects.get(key);
    if (old === undefined) return;
    objects.delete(key);
    unindex(key, old);
    tellAll((handlers) => handlers.deleted?.(last ?? old));
  }

  return {
    store: {
      get: (key) => objects.get(key),
      list: () => [...objects.values()],
      keys: () => objects.keys(),
      get size() {
        return objects.size;
      },
      by(name, value) {
        const index = indexes.get(name);
        if (index === undefined) throw new RangeError(`store: there is no index "${name}"`);
        return [...(index.get(value)?.values() ?? [])];
      },
      hasSynced: () => synced,
      freshAsOf: () => freshAsOf,
      subscribe(handlers) {
        subscribers.add(handlers);
        for (const object of objects.values()) {
          tell(handlers, (them) => them.added?.(object));
        }
        return () => void subscribers.delete(handlers);
      },
    },
    writer: {
      replace(list, asOf) {
        const present = new Set(list.map((object) => objectKey(object)));
        for (const key of objects.keys()) if (!present.has(key)) removeKey(key);
        for (const object of list) put(object);
        synced = true;
        freshAsOf = Math.max(freshAsOf, asOf);
      },
      put,
      remove: (object) => removeKey(objectKey(object), object),
      fresh(asOf) {
        freshAsOf = Math.max(freshAsOf, asOf);
      },
    },
  };
}
