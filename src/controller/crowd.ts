/**
 * A crowd of ticks that are due at once, from the sweep that finds them until the last one is decided, by whichever
 * replica. While it lasts, what can wait does: the API server's time goes to claims and Jobs first.
 */
import type { Key } from "../api/names.ts";
import type { Clock, Timers } from "../clock.ts";
import { crowdMs } from "./turns.ts";

export interface Crowd {
  /** A sweep found these. */
  arrived(keys: readonly Key[]): void;
  /** Somebody has decided this one's tick, or nothing is to be launched. */
  served(key: Key): void;
  /** This one's tick was of the crowd, which still lasts, and is decided. */
  isServed(key: Key): boolean;
  /** For a bounded time: what waits for its end is late by no more than the crowd may be (crowdMs). */
  busy(): boolean;
}

/** Fewer are served sooner than anybody else is in their way. */
const CROWD_FROM = 16;

export function createCrowd(o: { clock: Clock; timers: Timers; onOver: () => void }): Crowd {
  let open = new Set<Key>();
  let done = new Set<Key>();
  let running = false;
  /** Monotonic, ms. */
  let restsUntil = -Infinity;
  let callOff = (): void => undefined;

  function end(restMs: number): void {
    running = false;
    callOff();
    // ORDER: a crowd that did not end in time makes room for as long as it lasted. Else one after another could put off for
    // ever what waits.
    restsUntil = o.clock.monotonic() + restMs;
    o.onOver();
  }

  return {
    arrived(keys) {
      if (running) {
        for (const key of keys) {
          open.add(key);
          done.delete(key);
        }
        return;
      }
      if (keys.length < CROWD_FROM || o.clock.monotonic() < restsUntil) return;
      open = new Set(keys);
      done = new Set();
      running = true;
      const mostMs = crowdMs(keys.length);
      callOff = o.timers.after(mostMs, () => end(mostMs));
    },
    served(key) {
      if (!running || !open.delete(key)) return;
      done.add(key);
      if (open.size === 0) end(0);
    },
    isServed: (key) => running && done.has(key),
    busy: () => running,
  };
}
