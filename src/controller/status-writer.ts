/**
 * Writes the status, a report: after the fact: coalesced, with low priority, and only when something changed. The replica that
 * ranks first for a key writes it; the others step in when it does not.
 */
import { isDeepStrictEqual } from "node:util";
import { ConditionType } from "../api/reasons.ts";
import type { Key } from "../api/names.ts";
import type { LockedCronJob, LockedCronJobStatus } from "../api/types.ts";
import type { Clock } from "../clock.ts";
import { ledgerTroubleOf } from "../domain/decide/index.ts";
import { rankOf } from "../domain/election.ts";
import type { LockBackend, TemplateVerdict } from "../domain/conditions.ts";
import { activeRuns, type Ledger } from "../domain/ledger.ts";
import { mutexesOf } from "../domain/lock-terms.ts";
import { buildStatus } from "../domain/status.ts";
import { hasReason, type KubeClient, type ResourceType } from "../kube/index.ts";
import type { Ledgers, Members, Owners, StepHook } from "./ports.ts";
import type { ScheduleCache } from "./schedule-cache.ts";
import { difference } from "./status-difference.ts";
import { toldBy, type TemplateCheck } from "./template-check.ts";
import { again, done, type Outcome } from "./workqueue.ts";

export interface StatusWriterOptions {
  client: KubeClient;
  lockedCronJobs: ResourceType<LockedCronJob>;
  owners: Owners;
  ledgers: Pick<Ledgers, "cached">;
  members: Pick<Members, "live">;
  clock: Clock;
  /** In [0, 1), as Math.random. */
  random: () => number;
  replica: string;
  sharedMutexNamespaces: readonly string[];
  /** How long the locks of a run stay by themselves; see Watchdog. */
  validUntil(runId: string): number | undefined;
  schedules: ScheduleCache;
  lockBackend(): LockBackend;
  templates: TemplateCheck;
  /** Ticks go first: true while launches wait. */
  busy(): boolean;
  onStep: StepHook;
}

/** The status is given this long, per rank, to be written by a replica that ranks before this one, ms. */
const STAND_BY_MS = 5_000;
/** At least; as much again is random, so that a thousand of them do not come back together. */
const BUSY_RETRY_MS = 1_000;

export interface StatusWriter {
  reconcile(key: Key): Promise<Outcome>;
}

export function createStatusWriter(o: StatusWriterOptions): StatusWriter {
  /** When a replica that does not rank first is to see whether those before it have written. */
  const lookAt = new Map<Key, number>();

  async function reconcile(key: Key): Promise<Outcome> {
    const owner = o.owners.cached(key);
    if (owner === undefined || owner.metadata.deletionTimestamp !== undefined) {
      lookAt.delete(key);
      o.templates.forget(key);
      return done();
    }
    const now = o.clock.now();
    const rank = rankOf(o.replica, o.members.live(), key);
    if (rank > 0) {
      const at = lookAt.get(key) ?? now + rank * STAND_BY_MS;
      lookAt.set(key, at);
      if (now < at) return again(at);
    }
    if (o.busy()) return again(now + BUSY_RETRY_MS * (1 + o.random()));
    lookAt.delete(key);
    const template = rank > 0 ? toldBy(owner) : await o.templates.verdict(key, owner);
    const recheckAt = rank > 0 ? undefined : o.templates.recheckAt(key);
    const outcome = recheckAt === undefined ? done() : again(recheckAt);
    const fresh = wantedStatus(owner, key, { now, rank, template });
    const wanted = withValidUntilOf(owner.status, fresh, now);
    const patch = difference(owner.status ?? {}, wanted);
    if (patch === undefined) return outcome;
    await write(owner, patch);
    await o.onStep("statusWritten", key);
    return outcome;
  }

  function wantedStatus(
    owner: LockedCronJob,
    key: Key,
    { now, rank, template }: { now: number; rank: number; template: TemplateVerdict | undefined },
  ): LockedCronJobStatus {
    const contents = o.ledgers.cached(key)?.contents;
    const ledger =
      contents?.state === "present" && contents.ledger.owner === owner.metadata.uid
        ? contents.ledger
        : undefined;
    return buildStatus({
      owner,
      ledger,
      ledgerTrouble: contents === undefined ? undefined : ledgerTroubleOf(contents),
      now,
      template,
      schedule: o.schedules.of(key, owner),
      // As with the lock: while replicas of two releases run side by side, they must not write over each other.
      tzdata: rank > 0 ? owner.status?.tzdata : undefined,
      renewal: renewalOf(key, ledger),
      mutexes: mutexesOf(owner, o.sharedMutexNamespaces),
      lock: (rank > 0 ? lockAsTold(owner) : undefined) ?? o.lockBackend(),
    });
  }

  function renewalOf(key: Key, ledger: Ledger | undefined) {
    const members = o.members.live();
    const by = members.find((member) => rankOf(member, members, key) === 0) ?? o.replica;
    const newest = ledger === undefined ? undefined : activeRuns(ledger).at(-1);
    const validUntil = newest === undefined ? undefined : o.validUntil(newest.runId);
    return validUntil === undefined ? { by } : { by, validUntil };
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

/**
 * What the status says of the lock backend. Replicas may see it differently (one is cut off from Redis): only the first
 * tells its own view, or they would write over each other for ever.
 */
function lockAsTold({ status }: LockedCronJob): LockBackend | undefined {
  const told = status?.conditions?.find((c) => c.type === ConditionType.LockBackendAvailable);
  return told === undefined ? undefined : { quorum: told.status === "True", message: told.message };
}

/** Each renewal moves it on: that alone is not worth a write. */
function withValidUntilOf(
  told: LockedCronJobStatus | undefined,
  wanted: LockedCronJobStatus,
  now: number,
): LockedCronJobStatus {
  const { validUntil, ...lock } = told?.lock ?? {};
  const { validUntil: fresh, ...wantedLock } = wanted.lock ?? {};
  if (validUntil === undefined || fresh === undefined || Date.parse(validUntil) < now) {
    return wanted;
  }
  if (!isDeepStrictEqual(lock, wantedLock)) return wanted;
  return { ...wanted, lock: { ...wanted.lock, validUntil } };
}
