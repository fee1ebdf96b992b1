import { performance } from "node:perf_hooks";

/** Something that wants to be woken. */
export interface Alarm {
  /** On `performance.now()`; may be changed before `set`, and by `ring` itself. */
  dueAt: number;
  /** Its place among those that wait; -1: it does not. */
  place: number;
  ring(): void;
}

/**
 * One timer for all holds of a lock. Most holds are over long before their first look at the deadline: making and
 * clearing a timer for each would be a tenth of what a lock costs.
 */
export interface Alarms {
  set(alarm: Alarm): void;
  cancel(alarm: Alarm): void;
  close(): void;
}

export function createAlarms(): Alarms {
  // An array in no order: a Set with such a coming and going leaves a chain of old tables behind that the collector takes
  // for alive.
  const waiting: Alarm[] = [];
  let timer: NodeJS.Timeout | undefined;
  let armedFor = Infinity;

  function arm(dueAt: number): void {
    if (dueAt >= armedFor) return;
    clearTimeout(timer);
    armedFor = dueAt;
    timer = setTimeout(fire, Math.max(0, Math.ceil(dueAt - performance.now())));
  }

  function fire(): void {
    armedFor = Infinity;
    timer = undefined;
    const now = performance.now();
    let next = Infinity;
    for (const alarm of waiting.filter(({ dueAt }) => dueAt <= now)) {
      // One that rang before it may have called it off.
      if (take(alarm)) alarm.ring();
    }
    for (const { dueAt } of waiting) next = Math.min(next, dueAt);
    if (next < Infinity) arm(next);
  }

  function take(alarm: Alarm): boolean {
    const { place } = alarm;
    if (place < 0) return false;
    const last = waiting.pop();
    if (last !== undefined && last !== alarm) {
      waiting[place] = last;
      last.place = place;
    }
    alarm.place = -1;
    return true;
  }

  return {
    set(alarm) {
      if (alarm.place < 0) alarm.place = waiting.push(alarm) - 1;
      // Nobody waits for a timer that has nothing to wake.
      if (waiting.length === 1) timer?.ref();
      arm(alarm.dueAt);
    },
    cancel(alarm) {
      if (take(alarm) && waiting.length === 0) timer?.unref();
    },
    close() {
      // What is still held is told about its end all the same.
      if (waiting.length > 0) return;
      clearTimeout(timer);
      timer = undefined;
      armedFor = Infinity;
    },
  };
}
