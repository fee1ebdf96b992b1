/** What must hold in the end, judged on a state. What must never happen is judged where it would, in api-server.ts. */
import { LAUNCH_FINALIZER } from "../../../src/api/names.ts";
import type { ObjectMeta } from "../../../src/api/types.ts";
import { hasUnsettled, type Run } from "../../../src/domain/ledger.ts";
import { holderOf } from "../../../src/domain/lock-terms.ts";
import { HOUR, NOON } from "../../builders/objects.ts";
import { ledgerOf } from "./describe.ts";
import { KEY } from "./session.ts";
import type { World } from "./types.ts";

/**
 * Every tick that is due was launched or is recorded as one that will not run; or a Job was refused and waits to be tried
 * again, of which the ledger says why and when, and what comes after it waits with it.
 */
export function isDecided(world: World): boolean {
  const { owner, created, missed, now } = world;
  if (owner === undefined) return true;
  const { uid, creationTimestamp } = owner.metadata;
  const ledger = ledgerOf(world.lease);
  if (ledger?.owner === uid && ledger.runs.some((r) => waits(r, now))) return true;
  let open = 0;
  for (let tick = NOON; tick <= now; tick += HOUR) {
    if (tick <= Date.parse(creationTimestamp)) continue;
    if (!created.some((c) => c.ownerUid === uid && c.tick === tick)) open++;
  }
  return open <= missed;
}

/** Nothing bears our finalizer and no run is open, or only until a refused Job is tried again. */
export function isClean(world: World): boolean {
  const holds = ({ finalizers = [] }: ObjectMeta): boolean => finalizers.includes(LAUNCH_FINALIZER);
  if (world.jobs.some((j) => holds(j.metadata))) return false;
  const runs = ledgerOf(world.lease)?.runs ?? [];
  const holder = world.fence?.spec?.holderIdentity ?? "";
  if (holder.startsWith(KEY) && !runs.some((r) => holderOf(KEY, r.lockValue) === holder)) {
    return false;
  }
  if (world.lease === undefined) return true;
  if (!runs.every((run) => waits(run, world.now))) return false;
  if (!holds(world.lease.metadata) || runs.some(hasUnsettled)) return true;
  // A ledger that was deleted serves on until its last run has ended.
  return world.lease.metadata.deletionTimestamp !== undefined && runs.length > 0;
}

function waits({ refusal }: Run, now: number): boolean {
  return refusal !== undefined && refusal.retryAt > now;
}
