/** Which ticks are still to be decided. */
import type { LockedCronJob } from "../../api/types.ts";
import type { Ledger } from "../ledger.ts";
import { specText } from "../schedule/index.ts";

/** Ticks at or before this are decided, or are none of ours. */
export function ticksFrom(ledger: Ledger): number {
  return Math.max(ledger.lastTick, ledger.anchor);
}

/** What `anchor` belongs to: all that decides when ticks are. An edit of it makes ticks count anew. */
export function scheduleText(owner: LockedCronJob): string {
  return specText(owner.spec);
}
