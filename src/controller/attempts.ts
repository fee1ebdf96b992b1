/**
 * What this process knows of its own attempts. It lives in memory on purpose: an attempt belongs to one process, and
 * when that dies its memory is worth nothing to the others (they have to prove its death instead).
 */
import type { Clock } from "../clock.ts";
import type { AttemptFate } from "../domain/decide/index.ts";
import type { Attempt, Run } from "../domain/ledger.ts";
import type { Members } from "./ports.ts";

/**
 * How long a POST may still arrive after its process was proven dead, or gave up on it, ms. The sum of what it may take:
 *
 *    15 s  a process sends without another look at its Lease (membership.ts)
 *    30 s  its call waits for a connection and a place (--kube-timeout-ms at most); after that it is not sent at all
 *   128 s  the kernel goes on sending what a closed socket left behind: tcp_orphan_retries of 8 (the default 0 means 8)
 *          from a retransmission time-out of 250 ms, doubled each time (Linux, Documentation/networking/ip-sysctl;
 *          200 ms and the round trip are where it begins)
 *    60 s  the API server works on it (its --request-timeout)
 */
export const REQUEST_BOUND_MS = 240_000;

/** Answered attempts are remembered this long, so that a ledger version from the past cannot make us send again. */
const REMEMBER_MS = 3_600_000;

export interface AttemptBook {
  /** ORDER: before the POST leaves. From here on the attempt may not be sent again. */
  sending(runId: string, n: number): void;
  /** The POST was answered, whatever the answer. */
  answered(runId: string, n: number): void;
  /** The POST surely did not leave: it may be sent after all. */
  notSent(runId: string, n: number): void;
  fateOf(run: Run, attempt: Attempt): AttemptFate;
}

export function createAttemptBook(o: {
  process: string;
  clock: Clock;
  members: Pick<Members, "stateOf">;
  /** Default REQUEST_BOUND_MS; shorter only in tests. */
  requestBoundMs?: number;
}): AttemptBook {
  const requestBoundMs = o.requestBoundMs ?? REQUEST_BOUND_MS;
  const own = new Map<string, { state: "sent" | "answered"; at: number }>();
  let sweptAt = o.clock.monotonic();

  const idOf = (runId: string, n: number): string => `${runId}#${n}`;

  function sweep(now: number): void {
    if (now - sweptAt < REMEMBER_MS / 6) return;
    sweptAt = now;
    for (const [id, { at }] of own) {
      if (now - at > REMEMBER_MS) own.delete(id);
    }
  }

  return {
    sending(runId, n) {
      const now = o.clock.monotonic();
      sweep(now);
      own.set(idOf(runId, n), { state: "sent", at: now });
    },
    answered(runId, n) {
      own.set(idOf(runId, n), { state: "answered", at: o.clock.monotonic() });
    },
    notSent(runId, n) {
      own.delete(idOf(runId, n));
    },
    fateOf(run, attempt) {
      if (attempt.by !== o.process) {
        return o.members.stateOf(attempt.by) === "past" ? "past" : "foreign";
      }
      const known = own.get(idOf(run.runId, attempt.n));
      if (known === undefined) return "unsent";
      if (known.state === "answered") return "past";
      return o.clock.monotonic() - known.at > requestBoundMs ? "past" : "inDoubt";
    },
  };
}
