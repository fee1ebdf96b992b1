import type { Turns } from "../../src/controller/turns.ts";

/** Every step is ours to take, and what is asked for is news. */
export function ourTurns(): Turns {
  return {
    oursAt: () => 0,
    askedForMs: () => 0,
    keep: () => undefined,
    forget: () => undefined,
  };
}
