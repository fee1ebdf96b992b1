import type { Clock, Timers } from "../clock.ts";

/**
 * Wake-ups of a work queue: "look at this key again, at that moment". Two kinds, since two clocks matter: a delay is
 * measured on the monotonic clock (a back-off must not grow or vanish with a clock jump), an instant on the wall clock
 * (a tick is due when the wall clock says so, also after a jump).
 *
 * Per key and kind one wake-up is kept, the earliest: it is a hint to look, not a message.
 */
export interface Wakeups {
  after(key: string, ms: number, priority: number): void;
  at(key: string, wallMs: number, priority: number): void;
  drop(key: string): void;
  /** Keys with a wake-up pending. */
  size(): number;
  stop(): void;
}

/**
 * A wall clock may jump ahead while a timer sleeps, and timers know nothing of it: with an instant pending, look at
 * the wall clock at least this often. Also keeps every timer far below the 2^31 ms at which setTimeout overflows.
 */
const WALL_CLOCK_CHECK_MS = 1000;
const LONGEST_TIMER_MS = 3_600_000;

interface Entry {
  key: string;
  due: number;
  priority: number;
  /** Order of arrival, so that equal moments wake in the order in which they were asked for. */
  sequence: number;
}

export function createWakeups(options: {
  clock: Clock;
  timers: Timers;
  wake: (key: string, priority: number) => void;
}): Wakeups {
  const { clock, timers, wake } = options;
  const delays = createHeap();
  const instants = createHeap();
  let sequence = 0;
  let stopped = false;
  let armedFor = Infinity;
  let callOff: (() => void) | undefined;

  function arm(): void {
    if (stopped) return;
    const now = clock.monotonic();
    let due = (delays.peek()?.due ?? Infinity) - now;
    const instant = instants.peek();
    if (instant !== undefined) {
      due = Math.min(due, instant.due - clock.now(), WALL_CLOCK_CHECK_MS);
    }
    if (due === Infinity) {
      callOff?.();
      callOff = undefined;
      armedFor = Infinity;
      return;
    }
    const wait = Math.ceil(Math.min(Math.max(due, 0), LONGEST_TIMER_MS));
    if (callOff !== undefined && armedFor <= now + wait) return;
    callOff?.();
    armedFor = now + wait;
    callOff = timers.after(wait, () => {
      callOff = undefined;
      armedFor = Infinity;
      ring();
    });
  }

  function ring(): void {
    for (const entry of delays.takeUntil(clock.monotonic())) wake(entry.key, entry.priority);
    for (const entry of instants.takeUntil(clock.now())) wake(entry.key, entry.priority);
    arm();
  }

  function put(heap: Heap, key: string, due: number, priority: number): void {
    if (stopped) return;
    heap.put({ key, due, priority, sequence: sequence++ });
    arm();
  }

  return {
    after: (key, ms, priority) => put(delays, key, clock.monotonic() + Math.max(0, ms), priority),
    at: (key, wallMs, priority) => put(instants, key, wallMs, priority),
    drop(key) {
      delays.drop(key);
      instants.drop(key);
    },
    size: () => delays.size() + instants.size(),
    stop() {
      stopped = true;
      callOff?.();
      callOff = undefined;
    },
  };
}

interface Heap {
  peek(): Entry | undefined;
  /** Keeps the earlier of two entries of a key; of two equally early ones the higher priority. */
  put(entry: Entry): void;
  drop(key: string): void;
  /** Removes and returns what is due, earliest first. */
  takeUntil(moment: number): Entry[];
  size(): number;
}

/**
 * A binary min-heap with a map beside it. Removal is lazy: an entry that was replaced or dropped is no longer the one
 * in the map and is thrown away when it surfaces; the heap is rebuilt when such leftovers outnumber what lives.
 */
function createHeap(): Heap {
  let heap: Entry[] = [];
  const live = new Map<string, Entry>();

  const earlier = (a: Entry, b: Entry): boolean =>
    a.due < b.due || (a.due === b.due && a.sequence < b.sequence);

  function up(start: number): void {
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!swapIfEarlier(index, parent)) return;
      index = parent;
    }
  }

  function down(): void {
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= heap.length) return;
      const right = left + 1;
      const child =
        right < heap.length && earlier(heap[right] as Entry, heap[left] as Entry) ? right : left;
      if (!swapIfEarlier(child, index)) return;
      index = child;
    }
  }

  function swapIfEarlier(child: number, parent: number): boolean {
    const a = heap[child] as Entry;
    const b = heap[parent] as Entry;
    if (!earlier(a, b)) return false;
    heap[child] = b;
    heap[parent] = a;
    return true;
  }

  function push(entry: Entry): void {
    heap.push(entry);
    up(heap.length - 1);
  }

  function pop(): void {
    const last = heap.pop() as Entry;
    if (heap.length === 0) return;
    heap[0] = last;
    down();
  }

  function peek(): Entry | undefined {
    for (;;) {
      const top = heap[0];
      if (top === undefined || live.get(top.key) === top) return top;
      pop();
    }
  }

  function compact(): void {
    if (heap.length < 64 || heap.length < 2 * live.size) return;
    heap = [];
    for (const entry of live.values()) push(entry);
  }

  return {
    peek,
    put(entry) {
      const present = live.get(entry.key);
      if (present !== undefined) {
        if (present.due < entry.due) return;
        if (present.due === entry.due && present.priority >= entry.priority) return;
      }
      live.set(entry.key, entry);
      push(entry);
      compact();
    },
    drop(key) {
      live.delete(key);
      compact();
    },
    takeUntil(moment) {
      const due: Entry[] = [];
      for (let top = peek(); top !== undefined && top.due <= moment; top = peek()) {
        pop();
        live.delete(top.key);
        due.push(top);
      }
      return due;
    },
    size: () => live.size,
  };
}
