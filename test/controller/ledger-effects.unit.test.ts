import { describe, expect, it } from "vitest";
import { initLedger, rebase } from "../../src/controller/ledger-effects.ts";
import { scheduleText } from "../../src/domain/decide/index.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { aContext, aRecord } from "../builders/context.ts";
import {
  aJobView,
  aLedger,
  aLockedCronJob,
  anAttempt,
  aRun,
  at,
  HOUR,
  MINUTE,
  NOON,
} from "../builders/objects.ts";

const KEY = "team/report";

describe("a ledger that is made", () => {
  const making = (parts: {
    owner?: ReturnType<typeof aLockedCronJob>;
    jobs?: ReturnType<typeof aJobView>[];
    old?: Ledger;
    leaseToken?: number;
  }) => {
    const written: Ledger[] = [];
    const record =
      parts.old === undefined
        ? undefined
        : aRecord(parts.old, { token: parts.leaseToken ?? parts.old.token });
    const save = async (ledger: Ledger) => {
      written.push(ledger);
      return aRecord(ledger);
    };
    const context = aContext({
      owners: { read: async () => parts.owner ?? aLockedCronJob() },
      jobs: { list: async () => parts.jobs ?? [] },
      locks: { release: async () => undefined },
      ledgers: {
        cached: () => record,
        read: async () => record,
        create: (_, ledger) => save(ledger),
        write: (_, ledger) => save(ledger),
      },
    });
    return { context, written };
  };

  it("begins when the LockedCronJob was made", async () => {
    const { context, written } = making({});
    await initLedger(context, KEY);
    expect(written).toEqual([aLedger()]);
  });

  it("knows of the last tick and token that the status tells", async () => {
    const owner = { ...aLockedCronJob(), status: { lastScheduleTime: at(NOON), token: 8 } };
    const { context, written } = making({ owner });
    await initLedger(context, KEY);
    expect(written[0]).toMatchObject({ lastTick: NOON, lastLaunched: NOON, token: 8 });
  });

  it("knows of the Jobs that are there: newer ones than the status tells, and what runs", async () => {
    const owner = { ...aLockedCronJob(), status: { lastScheduleTime: at(NOON - HOUR), token: 1 } };
    const jobs = [aJobView({ token: 2 }), aJobView({ ownerUid: "owner-0", tick: NOON + HOUR })];
    const { context, written } = making({ owner, jobs });
    await initLedger(context, KEY);
    expect(written[0]).toMatchObject({ lastTick: NOON, token: 2 });
    expect(written[0]?.runs.map((r) => [r.runId, r.jobUID])).toEqual([[aRun().runId, "job-1"]]);
  });

  it("counts a finished Job as a run only as long as its finalizer is to be dropped", async () => {
    const done = { outcome: "Complete" as const, finishedAt: NOON };
    const jobs = [
      aJobView({ ...done, name: "j1", runId: "held", hasLaunchFinalizer: true }),
      aJobView({ ...done, name: "j2", runId: "free", hasLaunchFinalizer: false }),
    ];
    const { context, written } = making({ jobs });
    await initLedger(context, KEY);
    expect(written[0]?.runs.map((r) => r.runId)).toEqual(["held"]);
  });

  it("goes on with a namesake's token, and with those of its runs that may still bring a Job", async () => {
    const unsettled = aRun({ runId: "open" });
    const settled = aRun({ runId: "done", attempts: [anAttempt({ settled: true })] });
    const old = aLedger({ owner: "owner-0", token: 4, runs: [unsettled, settled] });
    const { context, written } = making({ old, leaseToken: 5 });
    await initLedger(context, KEY);
    expect(written[0]).toMatchObject({ owner: "owner-1", token: 5, lastTick: 0 });
    expect(written[0]?.runs).toEqual([{ ...unsettled, of: "owner-0" }]);
  });

  it("remembers of which namesake a run was, through a second one", async () => {
    const old = aLedger({ owner: "owner-0", runs: [aRun({ of: "owner-00" })] });
    const { context, written } = making({ old });
    await initLedger(context, KEY);
    expect(written[0]?.runs[0]?.of).toBe("owner-00");
  });

  it("is not made when it is there after all", async () => {
    const { context, written } = making({ old: aLedger() });
    expect(await initLedger(context, KEY)).toMatchObject({ next: "decide" });
    expect(written).toEqual([]);
  });

  it("is not written over one of a newer release that the cache did not know of", async () => {
    const record = aRecord(aLedger({ owner: "owner-0" }));
    const newer = { ...record, contents: { state: "newer" as const, message: "upgrade" } };
    const context = aContext({
      owners: { read: async () => aLockedCronJob() },
      ledgers: { cached: () => record, read: async () => newer },
    });
    expect(await initLedger(context, KEY)).toMatchObject({ next: "decide" });
  });
});

describe("an edited schedule", () => {
  const edited = aLockedCronJob({ schedule: "30 * * * *" });
  const action = { do: "rebase" as const, schedule: scheduleText(edited) };
  const old = aLedger({ lastTick: NOON - HOUR });

  async function rebased(live: ReturnType<typeof aLockedCronJob> | undefined, now: number) {
    const written: Ledger[] = [];
    const missed: number[] = [];
    const context = aContext({
      clock: { now: () => now },
      owners: { read: async () => live },
      observe: { missed: ({ count }) => void missed.push(count) },
      ledgers: {
        async write(_, ledger) {
          written.push(ledger);
          return aRecord(ledger);
        },
      },
    });
    const result = await rebase(context, KEY, aRecord(old), old, action);
    return { result, written, missed };
  }

  it("counts from the moment of the edit", async () => {
    const now = NOON - MINUTE;
    const { written, missed } = await rebased(edited, now);
    expect(written).toEqual([{ ...old, schedule: action.schedule, anchor: now }]);
    expect(missed).toEqual([]);
  });

  it("says of ticks that were due by the old one that they will not run", async () => {
    const { written, missed } = await rebased(edited, NOON + HOUR + MINUTE);
    expect(written[0]).toMatchObject({ lastTick: NOON + HOUR, missed: 2 });
    expect(written[0]?.decisions).toMatchObject([
      { decision: "Missed", reason: "ScheduleChanged" },
    ]);
    expect(missed).toEqual([2]);
  });

  it.each([
    ["a copy of the schedule that is behind", aLockedCronJob()],
    ["a copy of a namesake", aLockedCronJob({ schedule: "30 * * * *" }, { uid: "owner-2" })],
    ["nobody", undefined],
  ])("is not taken from %s", async (_, live) => {
    const { result, written } = await rebased(live, NOON);
    expect(written).toEqual([]);
    expect(result).toMatchObject({ next: "again", at: NOON + 1_000 });
  });
});
