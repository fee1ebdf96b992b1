import type { Clock, Timers } from "../../src/clock.ts";

/** A clock and its timers, moved by hand. Timers due at the same moment ring in the order in which they were set. */
export interface ManualTime {
  clock: Clock;
  timers: Timers;
  /** Lets `ms` pass: rings what falls due on the way, and lets promises settle after each. */
  pass(ms: number): Promise<void>;
  /** The wall clock alone is set ahead or back, as by NTP or an administrator. */
  jump(ms: number): void;
  pendingTimers(): number;
}

/** Lets every promise that can settle without I/O or time do so. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

export function manualTime(start = Date.UTC(2026, 0, 1)): ManualTime {
  let elapsed = 0;
  let offset = start;
  let nextId = 0;
  const pending = new Map<number, { due: number; fn: () => void }>();

  function earliest(until: number): number | undefined {
    let found: number | undefined;
    for (const [id, { due }] of pending) {
      if (due <= until && (found === undefined || due < pending.get(found)!.due)) found = id;
    }
    return found;
  }

  return {
    clock: { now: () => offset + elapsed, monotonic: () => elapsed },
    timers: {
      after(ms, fn) {
        const id = nextId++;
        pending.set(id, { due: elapsed + ms, fn });
        return () => void pending.delete(id);
      },
    },
    async pass(ms) {
      const until = elapsed + ms;
      await settle();
      for (let id = earliest(until); id !== undefined; id = earliest(until)) {
        const { due, fn } = pending.get(id)!;
        pending.delete(id);
        elapsed = Math.max(elapsed, due);
        fn();
        await settle();
      }
      elapsed = until;
    },
    jump: (ms) => void (offset += ms),
    pendingTimers: () => pending.size,
  };
}
