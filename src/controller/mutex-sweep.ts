/**
 * Frees fences whose run is over and that nobody has freed: whoever ended the run died before he came to it, or a replica
 * that was paused took one for a run that had ended meanwhile. Whoever wants the mutex looks for himself; this is for those
 * that nobody wants.
 */
import type { Timers } from "../clock.ts";
import { rankOf } from "../domain/election.ts";
import type { MutexBook } from "./mutexes.ts";
import type { Members, MutexRecord } from "./ports.ts";

export interface MutexSweep extends AsyncDisposable {
  start(): void;
  /** One look at all fences. */
  round(): Promise<void>;
}

/** A fence without a live run is left to the ranks before this one for so many rounds each. */
const INTERVAL_MS = 5_000;

export function createMutexSweep(o: {
  held(): Iterable<MutexRecord>;
  mutexes: Pick<MutexBook, "isOver" | "free" | "livesByCache">;
  members: Pick<Members, "live">;
  replica: string;
  timers: Timers;
}): MutexSweep {
  /** Rounds in which a version of a fence was seen without a live run. */
  let suspects = new Map<string, number>();
  let cancel: (() => void) | undefined;
  let stopped = false;

  async function round(): Promise<void> {
    const seen = new Map<string, number>();
    const members = o.members.live();
    // A copy: what is freed leaves the store meanwhile.
    for (const fence of Array.from(o.held())) {
      const { mutex, holder, resourceVersion } = fence;
      if (fence.foreign || holder === undefined || o.mutexes.livesByCache(holder)) continue;
      const id = `${mutex} ${resourceVersion}`;
      const rounds = suspects.get(id) ?? 0;
      seen.set(id, rounds + 1);
      if (rounds < rankOf(o.replica, members, mutex)) continue;
      try {
        if (await o.mutexes.isOver(holder)) await o.mutexes.free(fence);
      } catch {
        // The API server is away, or somebody else was first: the next round looks again.
        continue;
      }
    }
    suspects = seen;
  }

  async function loop(): Promise<void> {
    await round();
    if (!stopped) cancel = o.timers.after(INTERVAL_MS, () => void loop());
  }

  return {
    start: () => void loop(),
    round,
    async [Symbol.asyncDispose]() {
      stopped = true;
      cancel?.();
    },
  };
}
