import type { EventReason, Reason } from "../../api/reasons.ts";
import type { LockedCronJob } from "../../api/types.ts";
import type { JobView } from "../job.ts";
import type { Attempt, Ledger, Run } from "../ledger.ts";
import type { Mutexes } from "../lock-terms.ts";
import type { Manual } from "../manual.ts";
import type { ParseScheduleResult } from "../schedule/index.ts";

/**
 * What is known of an attempt's POST.
 *   unsent   it is this process's own and was not sent: nobody else can ever send it
 *   inDoubt  it is this process's own, was sent, and its answer is unknown: it may still arrive
 *   foreign  it is another process's, which may be alive: it may still arrive
 *   past     it was answered, or its process is proven dead for longer than a request may take: it cannot arrive
 */
export type AttemptFate = "unsent" | "inDoubt" | "foreign" | "past";

export type LedgerState =
  | { state: "absent" }
  /** `leaving`: it is being deleted, and only these finalizers, which are not ours, keep it. */
  | { state: "present"; ledger: Ledger; leaving?: readonly string[] }
  /** It belongs to a deleted namesake: rebuilt, but its token goes on, and so do its pending runs. */
  | { state: "orphan"; why: "namesake" }
  /** Not filled yet, or not to be read. `held`: its finalizer says that it knew of a POST that may still arrive. */
  | { state: "orphan"; why: "empty" | "garbled"; held: boolean }
  | { state: "newer"; message: string };

/** The whole world that a decision looks at. Everything that moves is in here; `decide` asks nobody else. */
export interface Snapshot {
  /** Wall clock, ms. */
  now: number;
  /** By how much our wall clock is proven to be ahead of the API server's, ms; negative when it is behind. */
  clockSkewMs: number;
  /** undefined when the LockedCronJob is gone. */
  owner: LockedCronJob | undefined;
  schedule: ParseScheduleResult | undefined;
  ledger: LedgerState;
  /** The Jobs that carry our label for this name, as the cache has them. */
  jobs: readonly JobView[];
  /** Ids of runs whose next step was tried and has to wait: they are left alone for now. */
  passOver?: ReadonlySet<string>;
  /** How many live replicas come before this one for this key. */
  rank: number;
  /** How long this rank stands by after something became due, ms. */
  standByMs: number;
  /** How long ago this process first saw that this is asked for, ms. What is asked for has no instant at which it is due. */
  askedForMs(request: string): number;
  fateOf(run: Run, attempt: Attempt): AttemptFate;
  /**
   * When the next step of this run is ours to take, wall clock ms: long ago when this process made its last attempt or
   * when the one that did is dead, else when that one has had time enough.
   */
  oursAt(run: Run): number;
  /** The mutexes that the LockedCronJob names, or what is wrong with them; absent: none. */
  mutexes?: Mutexes;
  /** What keeps this waiting run from its mutexes by what the caches know; undefined when they may be free. */
  busyOn?(run: Run): { mutex: string } | undefined;
}

/** One step. The controller carries it out, then decides again on what it finds. */
export type Action =
  | { do: "nothing" }
  | { do: "initLedger" }
  | { do: "rebase"; schedule: string }
  | { do: "letLedgerGo" }
  /** The mark that it is suspended is set or taken back. */
  | { do: "noteSuspend" }
  | { do: "resume" }
  /** `beside`: it excludes no other run and is excluded by none. */
  | { do: "launch"; tick: number; missed: number; manual?: Manual; beside?: boolean }
  | { do: "miss"; tick: number; count: number }
  | { do: "send"; run: Run; n: number }
  | { do: "takeOver"; run: Run }
  /** Take all mutexes of a waiting run, then grant and send its first attempt; or say what it waits for, or give up. */
  | { do: "lockMutexes"; run: Run }
  | { do: "recordStarted"; run: Run; jobUID: string; n: number; names: readonly string[] }
  | { do: "settle"; run: Run; ns: number[] }
  | { do: "dropFinalizer"; job: JobView; stray: boolean }
  /** The run is to end before its time: it is marked, then its Job is deleted. */
  | { do: "stop"; run: Run; job: JobView }
  | { do: "lookForJob"; run: Run }
  /** Carried out only on live evidence that no pod of the Job is alive. */
  | { do: "finish"; run: Run; job: JobView }
  /** lock.atLeastSeconds are over. */
  | { do: "letLockGo"; run: Run }
  | { do: "close"; run: Run }
  | { do: "abandon"; run: Run; missed: boolean }
  | { do: "prune"; jobs: JobView[] };

export type Decision = Action & {
  reason: Reason;
  /** One sentence for logs and status. */
  message: string;
  /** When to look again even if nothing changes, wall clock ms. */
  at?: number;
  /** An event to give about it; not again while the next ones bear the same `once`. */
  event?: { reason: EventReason; type: "Normal" | "Warning"; message: string; once: string };
};

/** Collects when to look again. */
export type Wait = (at: number) => void;

export function nothing(reason: Reason, message: string): Decision {
  return { do: "nothing", reason, message };
}

/** Of the ranks before, for what is asked for: nobody waits for a moment, and one that cannot act does not block it for ever, ms. */
const REQUEST_HEAD_START_MS = 3_000;

/** Whether this rank is to act on what is asked for, now that nobody of the ranks before has. */
export function isOurTurn(s: Snapshot, wait: Wait, request: string): boolean {
  if (s.rank === 0) return true;
  const leftMs = s.rank * REQUEST_HEAD_START_MS - s.askedForMs(request);
  if (leftMs > 0) wait(s.now + leftMs);
  return leftMs <= 0;
}

export function isGone(s: Snapshot): boolean {
  return s.owner === undefined || s.owner.metadata.deletionTimestamp !== undefined;
}
