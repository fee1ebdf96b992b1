/**
 * How many calls are under way at once, and which go first. There is no rate limit: the API server has its own
 * (priority and fairness), and a limit here is what makes native CronJob late.
 *
 * What launches a Job must never wait behind reports: calls of low priority leave three quarters of the places free,
 * those of normal priority a quarter.
 */
export type CallPriority = "high" | "normal" | "low";

export interface Gate {
  /** Resolves when the call may start. `leave` must follow in any case: it gives the place back, or the wait up. */
  enter(priority: CallPriority): { ready: Promise<void> | undefined; leave: () => void };
  inFlight(): number;
}

const ORDER: readonly CallPriority[] = ["high", "normal", "low"];

export function createGate(maxInFlight: number): Gate {
  const limit = {
    high: maxInFlight,
    normal: Math.max(1, Math.floor(maxInFlight * 0.75)),
    low: Math.max(1, Math.floor(maxInFlight * 0.25)),
  };
  const count = { high: 0, normal: 0, low: 0 };
  const waiting = {
    high: new Set<() => void>(),
    normal: new Set<() => void>(),
    low: new Set<() => void>(),
  };

  const total = (): number => count.high + count.normal + count.low;

  function hasRoom(priority: CallPriority): boolean {
    if (total() >= limit.high) return false;
    if (priority === "high") return true;
    if (count.normal + count.low >= limit.normal) return false;
    return priority === "normal" || count.low < limit.low;
  }

  function admit(): void {
    for (const priority of ORDER) {
      const line = waiting[priority];
      for (const start of line) {
        if (!hasRoom(priority)) break;
        line.delete(start);
        count[priority]++;
        start();
      }
    }
  }

  return {
    enter(priority) {
      if (hasRoom(priority)) {
        count[priority]++;
        return { ready: undefined, leave: once(() => leave(priority)) };
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      let inside = false;
      const start = (): void => {
        inside = true;
        resolve();
      };
      waiting[priority].add(start);
      return {
        ready: promise,
        leave: once(() => {
          if (inside) leave(priority);
          else waiting[priority].delete(start);
        }),
      };
    },
    inFlight: total,
  };

  function leave(priority: CallPriority): void {
    count[priority]--;
    admit();
  }
}

function once(fn: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    fn();
  };
}
