/**
 * The verdict: what became of each due tick. Due ticks come from the calendar, Jobs from a watch that began before the
 * first tick (every Job that was ever created counts, also one that was deleted since), reasons from the ledger.
 */
import type { Decision } from "../../src/domain/ledger.ts";
import type { Schedule } from "../../src/domain/schedule/index.ts";
import type { CreatedJob, LedgerVersion } from "../chaos/ticks.ts";

export interface Missed {
  readonly tick: number;
  readonly reason: string;
  readonly message: string;
}

export interface Account {
  readonly name: string;
  /** Ticks of the calendar, ms. */
  readonly due: readonly number[];
  /** Of the due ticks, those that have a Job. */
  readonly launched: number;
  /** Not launched, with the reason that the operator recorded. */
  readonly missed: readonly Missed[];
  /** Not launched, and nobody said why. */
  readonly unexplained: readonly number[];
  /** Jobs beyond the first of a tick, due or not. */
  readonly duplicates: number;
  /** Names of Jobs for instants that the calendar does not have. */
  readonly strays: readonly string[];
}

export interface Evidence {
  readonly name: string;
  readonly schedule: Schedule;
  /** Ticks count from here, ms; exclusive. */
  readonly anchor: number;
  /** Ticks up to here must be accounted for, ms; inclusive. */
  readonly until: number;
  readonly jobs: readonly Pick<CreatedJob, "uid" | "owner" | "tick" | "name">[];
  /** Every version of the ledger, oldest first. */
  readonly history: readonly { readonly ledger: LedgerVersion["ledger"] }[];
}

/** The ticks after `anchor`, up to and including `until`; ms. */
export function dueTicks(schedule: Schedule, anchor: number, until: number): number[] {
  const ticks: number[] = [];
  for (let tick = schedule.next(anchor); tick !== null && tick <= until;) {
    ticks.push(tick);
    tick = schedule.next(tick);
  }
  return ticks;
}

export function accountOf(evidence: Evidence): Account {
  const { name, schedule, anchor, until, jobs } = evidence;
  const due = dueTicks(schedule, anchor, until);
  const latest = jobs.reduce((last, { tick }) => Math.max(last, tick), until);
  // One chain from the anchor on: where an `@every` fires depends on where it is begun.
  const calendar = new Set(dueTicks(schedule, anchor, latest));
  const launched = new Set(jobs.map((job) => job.tick));
  const without = due.filter((tick) => !launched.has(tick));
  const reasons = new Map(without.map((tick) => [tick, missOf(evidence, tick)]));
  const perTick = Map.groupBy(jobs, (job) => `${job.owner} ${job.tick}`);
  return {
    name,
    due,
    launched: due.length - without.length,
    missed: without.flatMap((tick) => {
      const why = reasons.get(tick);
      return why === undefined ? [] : [{ tick, reason: why.reason, message: why.message }];
    }),
    unexplained: without.filter((tick) => reasons.get(tick) === undefined),
    duplicates: [...perTick.values()].reduce((sum, of) => sum + of.length - 1, 0),
    strays: jobs.filter(({ tick }) => !calendar.has(tick)).map((job) => job.name),
  };
}

/**
 * Why a tick has no Job: the version of the ledger that went past it says so, for this tick or for all up to a later one;
 * or it was claimed there, and given up later.
 */
export function missOf({ history }: Pick<Evidence, "history">, tick: number): Decision | undefined {
  const isMiss = (d: Decision): boolean => d.decision === "Missed";
  const at = history.findIndex(({ ledger }) => ledger.lastTick >= tick);
  const past = history[at]?.ledger;
  if (past === undefined) return undefined;
  if (!past.runs.some((run) => run.tick === tick)) {
    return past.decisions.findLast((d) => isMiss(d) && d.tick === past.lastTick);
  }
  // An entry of the claim itself is about the ticks before it.
  const old = new Set(past.decisions.map((d) => JSON.stringify(d)));
  return history
    .slice(at + 1)
    .flatMap(({ ledger }) => ledger.decisions)
    .find((d) => isMiss(d) && d.tick === tick && !old.has(JSON.stringify(d)));
}
