/**
 * When each LockedCronJob is next to be looked at: a binary heap of instants that one pulse a second sweeps by the wall
 * clock. A pulse that comes late loses nothing, it only finds more.
 */
export interface Agenda {
  /** One instant per key, wall clock ms: the newest word counts. */
  set(key: string, at: number): void;
  delete(key: string): void;
  /** Removes and returns the keys whose instant has come, earliest first. */
  due(now: number): string[];
  size(): number;
}

interface Entry {
  key: string;
  at: number;
}

export function createAgenda(): Agenda {
  const heap: Entry[] = [];
  /** The valid entry of each key; others in the heap are leftovers and are dropped when they surface. */
  const current = new Map<string, Entry>();

  function up(from: number): void {
    let i = from;
    const entry = heap[i] as Entry;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent] as Entry;
      if (above.at <= entry.at) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = entry;
  }

  function down(from: number): void {
    let i = from;
    const entry = heap[i] as Entry;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && right.at < (heap[child] as Entry).at) child++;
      const below = heap[child] as Entry;
      if (below.at >= entry.at) break;
      heap[i] = below;
      i = child;
    }
    heap[i] = entry;
  }

  function pop(): Entry {
    const top = heap[0] as Entry;
    const last = heap.pop() as Entry;
    if (heap.length > 0) {
      heap[0] = last;
      down(0);
    }
    return top;
  }

  /** Leftovers must not pile up when instants are set again and again. */
  function compact(): void {
    if (heap.length < 64 || heap.length < 2 * current.size) return;
    heap.length = 0;
    for (const entry of current.values()) {
      heap.push(entry);
      up(heap.length - 1);
    }
  }

  return {
    set(key, at) {
      // NaN is before and after nothing: on top of the heap it would hold up every other key.
      if (Number.isNaN(at)) throw new RangeError(`agenda: the instant of ${key} is not a number`);
      if (current.get(key)?.at === at) return;
      const entry = { key, at };
      current.set(key, entry);
      heap.push(entry);
      up(heap.length - 1);
      compact();
    },
    delete(key) {
      current.delete(key);
    },
    due(now) {
      const keys: string[] = [];
      while (heap.length > 0 && (heap[0] as Entry).at <= now) {
        const entry = pop();
        if (current.get(entry.key) !== entry) continue;
        current.delete(entry.key);
        keys.push(entry.key);
      }
      return keys;
    },
    size: () => current.size,
  };
}
