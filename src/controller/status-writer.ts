/**
 * Writes the status, a report: after the fact: coalesced, with low priority, and only when something changed. The replica that
 * ranks first for a key writes it; the others step in when it does not.
 */
import { isDeepStrictEqual } from "node:util";
import type { Key } from "../api/names.ts";
import type { LockedCronJob, LockedCronJobStatus } from "../api/types.ts";
import type { Clock } from "../clock.ts";
import { rankOf } from "../domain/election.ts";
import { parseSchedule } from "../domain/schedule/index.ts";
import { buildStatus, type LockBackend } from "../domain/status.ts";
import { hasReason, type KubeClient, type ResourceType } from "../kube/index.ts";
import type { Ledgers, Members, Owners, StepHook } from "./ports.ts";
import { again, done, type Outcome } from "./workqueue.ts";

export interface StatusWriterOptions {
  client: KubeClient;
  lockedCronJobs: ResourceType<LockedCronJob>;
  owners: Owners;
  ledgers: Pick<Ledgers, "cached">;
  members: Pick<Members, "live">;
  clock: Clock;
  replica: string;
  lockBackend(): LockBackend;
  /** Ticks go first: true while launches wait. */
  busy(): boolean;
  onStep: StepHook;
}

/** Another replica's status is given this long to appear before ours is written, per rank, ms. */
const STAND_BY_MS = 5_000;
const BUSY_RETRY_MS = 500;

export interface StatusWriter {
  reconcile(key: Key): Promise<Outcome>;
}

export function createStatusWriter(o: StatusWriterOptions): StatusWriter {
  /** When a replica that does not rank first saw that the status was not as it should be. */
  const differsSince = new Map<Key, number>();

  async function reconcile(key: Key): Promise<Outcome> {
    const owner = o.owners.cached(key);
    if (owner === undefined || owner.metadata.deletionTimestamp !== undefined) {
      differsSince.delete(key);
      return done();
    }
    const now = o.clock.now();
    if (o.busy()) return again(now + BUSY_RETRY_MS);
    const wanted = wantedStatus(owner, key, now);
    const patch = difference(owner.status ?? {}, wanted);
    if (patch === undefined) {
      differsSince.delete(key);
      return done();
    }
    const rank = rankOf(o.replica, o.members.live(), key);
    const since = differsSince.get(key) ?? now;
    if (rank > 0 && now < since + rank * STAND_BY_MS) {
      differsSince.set(key, since);
      return again(since + rank * STAND_BY_MS);
    }
    differsSince.delete(key);
    await write(owner, patch);
    await o.onStep("statusWritten", key);
    return done();
  }

  function wantedStatus(owner: LockedCronJob, key: Key, now: number): LockedCronJobStatus {
    const contents = o.ledgers.cached(key)?.contents;
    const ledger =
      contents?.state === "present" && contents.ledger.owner === owner.metadata.uid
        ? contents.ledger
        : undefined;
    return buildStatus({
      owner,
      ledger,
      now,
      schedule: parseSchedule(owner.spec.schedule, { timeZone: owner.spec.timeZone }),
      lock: o.lockBackend(),
    });
  }

  async function write(owner: LockedCronJob, status: object): Promise<void> {
    const { name, namespace, uid } = owner.metadata;
    try {
      await o.client.patch(
        o.lockedCronJobs,
        { namespace, name },
        // The uid makes sure that a namesake does not get it.
        { type: "merge", body: { metadata: { uid }, status } },
        { subresource: "status", priority: "low" },
      );
    } catch (error) {
      if (!hasReason(error, "NotFound", "Conflict")) throw error;
    }
  }

  return { reconcile };
}

/** A merge patch from one status to the other; undefined when they are the same. */
export function difference(
  old: LockedCronJobStatus,
  wanted: LockedCronJobStatus,
): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const field of new Set([...Object.keys(old), ...Object.keys(wanted)])) {
    const a = old[field as keyof LockedCronJobStatus];
    const b = wanted[field as keyof LockedCronJobStatus];
    if (!isDeepStrictEqual(a, b)) patch[field] = b ?? null;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}
