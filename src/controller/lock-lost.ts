/** What becomes of a run whose lock is held by somebody else: an event, and what spec.lock.onLost says. */
import type { Key } from "../api/names.ts";
import { EventReason } from "../api/reasons.ts";
import type { Run } from "../domain/ledger.ts";
import type { EventSink, Jobs, Owners } from "./ports.ts";

const SAID = {
  Continue: "the job goes on",
  Suspend: "the job is suspended, as lock.onLost says",
  Delete: "the job is deleted, as lock.onLost says",
};

export function createLockLost(o: {
  owners: Pick<Owners, "cached">;
  jobs: Pick<Jobs, "cached" | "suspend" | "delete">;
  events: EventSink;
  /** It could not be suspended or deleted. */
  onTrouble(key: Key, error: unknown): void;
}): (key: Key, run: Run, lockKey: string) => void {
  return (key, run, lockKey) => {
    const { onLost = "Continue" } = run.lock ?? {};
    const owner = o.owners.cached(key);
    if (owner !== undefined) {
      const lock = lockKey === run.lockKey ? "The lock" : `The mutex ${lockKey.split(":").at(-1)}`;
      const message = `${lock} of job ${run.jobName} was lost in Redis and is held by somebody else; ${SAID[onLost]}`;
      o.events.event(owner, "Warning", EventReason.LockLost, message);
    }
    const job = o.jobs.cached(key).find((j) => j.uid === run.jobUID);
    if (job === undefined || onLost === "Continue") return;
    const done = onLost === "Suspend" ? o.jobs.suspend(job) : o.jobs.delete(job);
    done.catch((error: unknown) => o.onTrouble(key, error));
  };
}
