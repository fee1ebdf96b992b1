/** What each pulse does: finds the keys whose instant has come, by the wall clock, and looks after that clock itself. */
import type { Key } from "../api/names.ts";
import type { Clock } from "../clock.ts";
import { isClockWrong } from "../domain/decide/index.ts";
import type { Agenda } from "./agenda.ts";

/** Ticks first, then the follow-ups of launches, then what watches report. */
export const PRIORITY = { due: 100, dueLater: 90, followUp: 20, watch: 10 };
/** A pulse that comes so late was paused, ms. */
const PAUSED_MS = 5_000;

export interface Sweeper {
  beat(): void;
  /** Of the last sweep that found any. */
  dueAtOnce(): number;
  /** Wall clock, ms. */
  beatAt(): number;
}

export function createSweeper(o: {
  clock: Clock;
  agenda: Pick<Agenda, "due">;
  /** See SkewMeter. */
  skewMs(): number;
  /** How many replicas go before this one for a key. */
  rank(key: Key): number;
  running(): boolean;
  /** Every LockedCronJob. */
  keys(): Iterable<Key>;
  /** These are due now; told before they are added. */
  onDue(keys: readonly Key[]): void;
  add(key: Key, priority: number): void;
}): Sweeper {
  let dueAtOnce = 1;
  let beatAt = o.clock.now();
  let wasWrong = false;

  /** The ticks that this replica is first in line for go first: the others may never need us. */
  function sweep(): void {
    const keys = o.agenda.due(beatAt);
    if (keys.length === 0) return;
    dueAtOnce = keys.length;
    o.onDue(keys);
    for (const key of keys) o.add(key, o.rank(key) === 0 ? PRIORITY.due : PRIORITY.dueLater);
  }

  return {
    beat() {
      const gapMs = o.clock.now() - beatAt;
      beatAt = o.clock.now();
      if (!o.running()) return;
      const wrong = isClockWrong({ clockSkewMs: o.skewMs() });
      const mended = wasWrong && !wrong;
      wasWrong = wrong;
      if (mended || gapMs < 0) {
        // The instants in the agenda are of another time, maybe days away.
        for (const key of o.keys()) o.add(key, PRIORITY.dueLater);
      } else if (gapMs <= PAUSED_MS) {
        // After a pause the caches are of the past: what the watches have to say is read before the next pulse.
        sweep();
      }
    },
    dueAtOnce: () => dueAtOnce,
    beatAt: () => beatAt,
  };
}
