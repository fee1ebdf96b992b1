/** What people have asked for and got, as a ledger that is made anew finds it: in the status, and on the Jobs. */
import type { LockedCronJob } from "../api/types.ts";
import type { JobView } from "../domain/job.ts";
import type { Ledger } from "../domain/ledger.ts";

export function askedBefore(
  { status }: LockedCronJob,
  jobs: readonly JobView[],
  /** The ledger that was lost, as far as it is known. */
  last: Ledger | undefined,
): Pick<Ledger, "triggers" | "backfill"> {
  const ids = (kind: string): string[] =>
    jobs.flatMap(({ manual }) => (manual?.kind === kind ? [manual.id] : []));
  const triggers = new Set(
    [...(last?.triggers ?? []), ...ids("trigger"), status?.lastTrigger].filter(
      (id) => id !== undefined,
    ),
  );
  // One at a time: the newest Job tells which, when the status does not yet.
  const newest = jobs
    .filter((j) => j.manual?.kind === "backfill")
    .toSorted((a, b) => (a.token ?? 0) - (b.token ?? 0))
    .at(-1);
  const id = newest?.manual?.id ?? last?.backfill?.id ?? status?.backfill?.id;
  const cursor = Math.max(
    0,
    last?.backfill?.id === id ? (last?.backfill?.cursor ?? 0) : 0,
    status?.backfill?.id === id ? parseTime(status?.backfill?.cursor) : 0,
    ...jobs.map((j) => (j.manual?.kind === "backfill" && j.manual.id === id ? (j.tick ?? 0) : 0)),
  );
  return {
    ...(triggers.size === 0 ? {} : { triggers: [...triggers] }),
    ...(id === undefined ? {} : { backfill: { id, cursor } }),
  };
}

/** The tick of the schedule that a Job stands for, ms; 0 for one that somebody asked for. */
export function tickOf({ tick, manual }: JobView): number {
  return manual === undefined ? (tick ?? 0) : 0;
}

/** An RFC 3339 time of a status, ms; 0 when there is none. */
export function parseTime(text: string | undefined): number {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? 0 : ms;
}
