import { performance } from "node:perf_hooks";

/** Something that wants to be woken. */
export interface Alarm {
  /** On `performance.now()`; may be changed before `set`, and by `ring` itself. */
  dueAt: number;
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
  const waiting = new Set<Alarm>();
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
    for (const alarm of waiting) {
      if (alarm.dueAt <= now && waiting.delete(alarm)) alarm.ring();
    }
    for (const { dueAt } of waiting) next = Math.min(next, dueAt);
    if (next < Infinity) arm(next);
  }

  return {
    set(alarm) {
      waiting.add(alarm);
      // Nobody waits for a timer that has nothing to wake.
      if (waiting.size === 1) timer?.ref();
      arm(alarm.dueAt);
    },
    cancel(alarm) {
      if (waiting.delete(alarm) && waiting.size === 0) timer?.unref();
    },
    close() {
      // What is still held is told about its end all the same.
      if (waiting.size > 0) return;
      clearTimeout(timer);
      timer = undefined;
      armedFor = Infinity;
    },
  };
}
