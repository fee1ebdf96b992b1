/**
 * The rules of the launch protocol, checked on what was seen of one LockedCronJob. resourceVersions are compared across
 * resources: they are revisions of one etcd, so they order all writes of the cluster.
 */
import { Reason } from "../../src/api/reasons.ts";
import { parseSchedule } from "../../src/domain/schedule/index.ts";
import { ticksFrom } from "../../src/domain/decide/index.ts";
import { activeRuns, type Ledger, type Run } from "../../src/domain/ledger.ts";
import type { CreatedJob, LedgerVersion } from "./ticks.ts";

export interface Seen {
  readonly name: string;
  readonly jobs: readonly CreatedJob[];
  /** Every version of the ledger, oldest first. */
  readonly history: readonly LedgerVersion[];
  /** resourceVersions before which versions may be missing. */
  readonly gaps: readonly number[];
  /** uids of LockedCronJobs whose runs exclude each other. */
  readonly forbid: ReadonlySet<string>;
  /** More is to come: a claim that is open is none that was forgotten. */
  readonly goesOn?: boolean;
}

const isGapBetween = (gaps: readonly number[], from: number, to: number): boolean =>
  gaps.some((gap) => from < gap && gap <= to);

/** One line per violation. */
export function violationsOf(seen: Seen): string[] {
  const broken = [
    ...oneJobPerTick(seen),
    ...tokensIncrease(seen),
    ...runsExcludeEachOther(seen),
    ...everyJobWasAuthorised(seen),
    ...everyClaimHasItsJob(seen),
    ...finalizersHeld(seen),
    ...everyTickIsAccountedFor(seen),
  ];
  return broken.map((line) => `${seen.name}: ${line}`);
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** G1. By uid, so that one that was created and deleted counts. */
function oneJobPerTick({ jobs }: Seen): string[] {
  const byTick = Map.groupBy(jobs, (job) => `${job.owner} ${job.manual ?? ""} ${iso(job.tick)}`);
  return [...byTick]
    .filter(([, of]) => of.length > 1)
    .map(
      ([tick, of]) =>
        `${of.length} Jobs for tick ${tick}: ${of.map((j) => `${j.name} (${j.uid}, attempt ${j.attempt})`).join(", ")}`,
    );
}

/**
 * By tick. Jobs may be created in another order only where runs do not exclude each other (policy Allow): there a claim
 * that was taken over late comes after the next tick's.
 */
function tokensIncrease({ jobs }: Seen): string[] {
  const broken: string[] = [];
  const scheduled = jobs.filter((job) => job.manual === undefined);
  for (const of of Map.groupBy(scheduled, (job) => job.owner).values()) {
    const ordered = of.toSorted((a, b) => a.tick - b.tick);
    for (const [i, job] of ordered.entries()) {
      const before = ordered[i - 1];
      if (before !== undefined && job.token <= before.token) {
        broken.push(`token ${job.token} of ${job.name} after ${before.token} of ${before.name}`);
      }
    }
  }
  return broken;
}

/** Any policy but Allow: nothing is claimed while another run is active, and Jobs are created in the order of their ticks. */
function runsExcludeEachOther({ jobs, history, forbid, gaps }: Seen): string[] {
  const crowded = history.slice(1).flatMap((next, i) => {
    const before = history[i];
    if (before === undefined || isGapBetween(gaps, before.version, next.version)) return [];
    // One that was made anew from Jobs tells of those that there are.
    if (before.leaseUid !== next.leaseUid || !forbid.has(next.ledger.owner)) return [];
    const [claimed] = newRuns(before.ledger, next.ledger);
    const others = activeRuns(next.ledger).filter((run) => run !== claimed);
    if (claimed === undefined || others.length === 0) return [];
    return [`${claimed.jobName} was claimed while ${others[0]?.jobName} was active`];
  });
  const ordered = jobs.filter(
    ({ owner = "", manual }) => forbid.has(owner) && manual === undefined,
  );
  const late = ordered.slice(1).filter((job, i) => {
    const before = ordered[i];
    return before !== undefined && job.owner === before.owner && job.tick < before.tick;
  });
  return [...crowded, ...late.map((job) => `${job.name} was created after a later tick's`)];
}

function newRuns(before: Ledger, next: Ledger): Run[] {
  return next.runs.filter((run) => !before.runs.some((r) => r.runId === run.runId));
}

/** A Job may come only of an attempt that the ledger knew before. */
function everyJobWasAuthorised({ jobs, history, gaps }: Seen): string[] {
  return jobs.flatMap((job) => {
    const authorised = history.some(
      ({ version, ledger }) =>
        (version < job.createdAt || isGapBetween(gaps, job.createdAt, version)) &&
        ledger.runs.some(
          (run) => run.runId === job.runId && run.attempts.some((a) => a.n === job.attempt),
        ),
    );
    return authorised ? [] : [`attempt ${job.attempt} of ${job.name} was not in the ledger before`];
  });
}

/** G2, for claims: each got a Job with its token, or was called missed, or its LockedCronJob went. */
function everyClaimHasItsJob({ jobs, history, goesOn = false }: Seen): string[] {
  const last = history.at(-1)?.ledger;
  const isOpen = (runId: string): boolean =>
    last?.runs.some((run) => run.runId === runId && run.jobUID === undefined) === true;
  return [...claimsOf(history)].flatMap(([runId, { run, owner }]) => {
    const job = jobs.find((j) => j.runId === runId);
    if (job !== undefined) {
      return job.token === run.token
        ? []
        : [`${job.name} bears token ${job.token}, its claim ${run.token}`];
    }
    if (owner !== last?.owner || (goesOn && isOpen(runId))) return [];
    return calledMissed(history, run)
      ? []
      : [`tick ${iso(run.tick)} was claimed, has no Job and is not called missed`];
  });
}

function claimsOf(history: readonly LedgerVersion[]): Map<string, { run: Run; owner: string }> {
  const claims = new Map<string, { run: Run; owner: string }>();
  for (const { ledger } of history) {
    for (const run of ledger.runs) {
      if (run.of === undefined) claims.set(run.runId, { run, owner: ledger.owner });
    }
  }
  return claims;
}

function calledMissed(history: readonly LedgerVersion[], run: Run): boolean {
  return history.some(({ ledger }) =>
    ledger.decisions.some((d) => d.decision === "Missed" && d.tick === run.tick),
  );
}

/**
 * The finalizer may go only after the ledger said that every attempt is settled: until then a POST may be under way that
 * has to meet the Job.
 */
function finalizersHeld({ jobs, history, gaps }: Seen): string[] {
  return jobs.flatMap((job) => {
    if (job.releasedAt === undefined) return [];
    const then = history.findLast(({ version }) => version < (job.releasedAt ?? 0));
    const run = then?.ledger.runs.find((r) => r.runId === job.runId);
    if (run === undefined || isGapBetween(gaps, then?.version ?? 0, job.releasedAt)) return [];
    const open = run.attempts.filter((a) => !a.settled);
    return open.length === 0 && run.jobUID === job.uid
      ? []
      : [`the finalizer of ${job.name} went with ${open.length} attempts under way`];
  });
}

/** G2: between two versions of a ledger, each tick by the calendar was claimed or counted as missed. */
function everyTickIsAccountedFor({ history, gaps }: Seen): string[] {
  return history.slice(1).flatMap((next, i) => {
    const before = history[i];
    if (before === undefined || isGapBetween(gaps, before.version, next.version)) return [];
    return stepBroken(before, next);
  });
}

function stepBroken(before: LedgerVersion, next: LedgerVersion): string[] {
  const [a, b] = [before.ledger, next.ledger];
  const broken: string[] = [];
  // A namesake goes on counting where the ledger of the one before it is still there.
  if (b.token < a.token && (a.owner === b.owner || before.leaseUid === next.leaseUid)) {
    broken.push(`the token went back from ${a.token} to ${b.token}`);
  }
  if (a.owner !== b.owner) return broken;
  if (b.lastTick < a.lastTick) {
    broken.push(`the last tick went back from ${iso(a.lastTick)} to ${iso(b.lastTick)}`);
  }
  // A ledger that was made anew knows no more than the Jobs and the status do.
  if (before.leaseUid !== next.leaseUid) return broken;
  const due = ticksBetween(a, b.lastTick);
  const claimed = newRuns(a, b).filter((run) => run.manual === undefined).length;
  const abandoned = a.runs.filter(
    (run) =>
      run.jobUID === undefined &&
      run.manual === undefined &&
      run.of === undefined &&
      !b.runs.some((r) => r.runId === run.runId) &&
      b.decisions.some(
        (d) => d.decision === "Missed" && d.tick === run.tick && d.reason !== Reason.Deleted,
      ),
  ).length;
  const missed = b.missed - a.missed - abandoned;
  if (claimed + missed !== due) {
    broken.push(
      `${due} ticks in (${iso(ticksFrom(a))}, ${iso(b.lastTick)}], but ${claimed} claimed and ${missed} missed`,
    );
  }
  return broken;
}

function ticksBetween(ledger: Ledger, to: number): number {
  const [expression, timeZone] = JSON.parse(ledger.schedule) as [string, string | null];
  const parsed = parseSchedule(expression, { timeZone: timeZone ?? undefined });
  if (!parsed.ok) return 0;
  return parsed.schedule.countFires(ticksFrom(ledger), to);
}
