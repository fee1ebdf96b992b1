/**
 * Whose turn a run's next step is. The process that made the last attempt goes first; the others follow when it has
 * had time enough since they first saw the run in its present state, or at once when it is known to be dead.
 */
import type { Clock } from "../clock.ts";
import type { Run } from "../domain/ledger.ts";
import type { Members } from "./ports.ts";

export interface Turns {
  /** Wall clock, ms; in the past when it is ours already. */
  oursAt(key: string, run: Run, standByMs: number): number;
  /** How long ago this request of the key was first asked about, ms. Of each kind (its first word) only the newest is remembered. */
  askedForMs(key: string, request: string): number;
  /** Drops what is remembered of a key that is gone. */
  forget(key: string): void;
  /** Drops what is remembered of runs that are over. */
  keep(key: string, runs: readonly Run[]): void;
}

export function createTurns(o: {
  process: string;
  clock: Clock;
  members: Pick<Members, "stateOf">;
  takeOverAfterMs: number;
  /** More patience while many ticks are due at once: nobody is late who has a thousand of them to serve, ms. */
  crowdMs?: () => number;
}): Turns {
  /** `at` on the monotonic clock: a wall clock that is set back must not put a take-over off by as much. */
  const firstSeen = new Map<string, Map<string, { state: string; at: number }>>();
  const requests = new Map<string, Map<string, { request: string; at: number }>>();

  return {
    oursAt(key, run, standByMs) {
      const by = run.attempts.at(-1)?.by ?? run.waiting?.by ?? "";
      if (by === o.process) return 0;
      let runs = firstSeen.get(key);
      if (runs === undefined) firstSeen.set(key, (runs = new Map()));
      const state = `${by} ${run.attempts.length} ${run.jobUID ?? ""}`;
      let seen = runs.get(run.runId);
      if (seen?.state !== state) {
        seen = { state, at: o.clock.monotonic() };
        runs.set(run.runId, seen);
      }
      const dead = ["dead", "past"].includes(o.members.stateOf(by));
      const patienceMs = standByMs + (dead ? 0 : o.takeOverAfterMs + (o.crowdMs?.() ?? 0));
      return o.clock.now() + seen.at + patienceMs - o.clock.monotonic();
    },
    askedForMs(key, request) {
      const now = o.clock.monotonic();
      let kinds = requests.get(key);
      if (kinds === undefined) requests.set(key, (kinds = new Map()));
      const kind = request.slice(0, request.indexOf(" "));
      let seen = kinds.get(kind);
      if (seen?.request !== request) kinds.set(kind, (seen = { request, at: now }));
      return now - seen.at;
    },
    forget(key) {
      requests.delete(key);
      firstSeen.delete(key);
    },
    keep(key, runs) {
      if (runs.length === 0) {
        firstSeen.delete(key);
        return;
      }
      const known = firstSeen.get(key);
      for (const runId of known?.keys() ?? []) {
        if (!runs.some((r) => r.runId === runId)) known?.delete(runId);
      }
    },
  };
}

const CROWD_MS_PER_TICK = 10;
const CROWD_MAX_MS = 20_000;

/** What a crowd of ticks that are due at once may take longer, ms. */
export function crowdMs(dueAtOnce: number): number {
  return Math.min((dueAtOnce - 1) * CROWD_MS_PER_TICK, CROWD_MAX_MS);
}
