import { describe, expect, it } from "vitest";
import { decide } from "../../src/domain/decide/index.ts";
import { aJobView, aLedger, aLockedCronJob, anAttempt, aRun, NOON } from "../builders/objects.ts";
import { aSnapshot, present } from "../builders/snapshot.ts";

const waiting = { by: "me/1", since: NOON, until: NOON + 60_000, retryMs: 1_000 };
const run = aRun({ attempts: [], waiting, lock: { mutexes: ["team/db"] } });
const ledger = present(aLedger({ runs: [run], lastTick: NOON }));
const busy = { busyOn: () => ({ mutex: "team/db" }) };
const said = {
  ...run,
  waiting: { ...waiting, on: { mutex: "team/db", reason: "MutexBusy", message: "busy" } },
};
const after = (ms: number) => ({ now: NOON + ms });

describe("a run that waits for mutexes", () => {
  it("takes them when they may be free", () => {
    expect(decide(aSnapshot({ ledger, ...after(1_000) }))).toMatchObject({ do: "lockMutexes" });
  });

  it("is left to the replica that claimed it, for a while", () => {
    const oursAt = () => NOON + 9_000;
    expect(decide(aSnapshot({ ledger, oursAt, ...after(1_000) }))).toMatchObject({
      do: "nothing",
      at: NOON + 9_000,
    });
  });

  it("says so when it finds one busy", () => {
    expect(decide(aSnapshot({ ledger, ...busy, ...after(1_000) }))).toMatchObject({
      do: "lockMutexes",
      reason: "MutexBusy",
    });
  });

  it("then asks for nothing until the fence changes or its time is over", () => {
    const told = present(aLedger({ runs: [said], lastTick: NOON }));
    expect(decide(aSnapshot({ ledger: told, ...busy, ...after(1_000) }))).toMatchObject({
      do: "nothing",
      at: NOON + 60_001,
    });
    expect(decide(aSnapshot({ ledger: told, ...busy, ...after(60_001) }))).toMatchObject({
      do: "lockMutexes",
    });
  });

  it.each([
    ["ahead", 3_600_000],
    ["behind", -3_600_000],
  ])("is not given up by a replica whose clock is %s", (_, clockSkewMs) => {
    const told = present(aLedger({ runs: [said], lastTick: NOON }));
    const now = NOON + 1_000 + clockSkewMs;
    expect(decide(aSnapshot({ ledger: told, ...busy, now, clockSkewMs }))).toMatchObject({
      do: "nothing",
    });
  });

  it("is given up when its time is over and its schedule is invalid: it may have fences, and cannot be built", () => {
    const schedule = { ok: false, reason: "UnparseableSchedule", message: "no" } as const;
    expect(decide(aSnapshot({ ledger, schedule, ...after(1_000) }))).toMatchObject({
      do: "nothing",
      reason: "UnparseableSchedule",
    });
    expect(decide(aSnapshot({ ledger, schedule, ...after(60_001) }))).toMatchObject({
      do: "abandon",
      missed: true,
      reason: "TooLate",
    });
  });

  it("is given up with its LockedCronJob, though nobody is proven dead", () => {
    expect(decide(aSnapshot({ ledger, owner: undefined, ...after(1_000) }))).toMatchObject({
      do: "abandon",
      missed: false,
    });
  });

  it("keeps the next tick waiting under Forbid", () => {
    const oursAt = () => Infinity;
    expect(decide(aSnapshot({ ledger, oursAt, ...after(3_600_000) }))).toMatchObject({
      do: "nothing",
      reason: "LaunchInProgress",
      message: expect.stringContaining("waits for a mutex") as string,
    });
  });
});

it("nothing is launched while a mutex is not allowed; an event says so once for each edit", () => {
  const mutexes = { ok: false, reason: "MutexNotAllowed", message: "pool/z" } as const;
  const s = { ledger: present(aLedger()), owner: aLockedCronJob(), mutexes, ...after(1_000) };
  expect(decide(aSnapshot({ ...s, rank: 0 }))).toMatchObject({
    do: "nothing",
    reason: "MutexNotAllowed",
    event: { reason: "MutexNotAllowed", once: "mutexes of generation 1" },
  });
  expect(decide(aSnapshot({ ...s, rank: 1 })).event).toBeUndefined();
});

describe("a run that atLeastSeconds keep", () => {
  const kept = aRun({
    jobUID: "job-1",
    ended: true,
    keptUntil: NOON + 5_000,
    attempts: [anAttempt({ settled: true })],
  });
  const of = (fields: object) =>
    decide(
      aSnapshot({
        ledger: present(aLedger({ runs: [kept], lastTick: NOON })),
        jobs: [aJobView({ outcome: "Complete", finishedAt: NOON, hasLaunchFinalizer: false })],
        ...fields,
      }),
    );

  it("stays until then", () => {
    expect(of(after(4_999))).toMatchObject({ do: "nothing", at: NOON + 5_000 });
  });

  it("and lets its locks go", () => {
    expect(of(after(5_000))).toMatchObject({ do: "letLockGo" });
  });

  it("not by a replica whose clock is wrong", () => {
    const clockSkewMs = 3_600_000;
    expect(of({ now: NOON + 5_000 + clockSkewMs, clockSkewMs })).toMatchObject({ do: "nothing" });
  });

  it.each([
    [
      "has finished",
      [aJobView({ outcome: "Complete", finishedAt: NOON, hasLaunchFinalizer: false })],
    ],
    ["is gone", []],
  ])("nor is it such a replica that tells for how long when its Job %s", (_, jobs) => {
    const { keptUntil: _until, ended: _ended, ...going } = kept;
    const runs = [{ ...going, lockedAt: NOON }];
    const clockSkewMs = 3_600_000;
    const fields = { ledger: present(aLedger({ runs, lastTick: NOON })), jobs, clockSkewMs };
    expect(of({ ...fields, now: NOON + clockSkewMs + 1_000 })).toMatchObject({ do: "nothing" });
    expect(of({ ...fields, clockSkewMs: 0 }).do).toMatch(/finish|lookForJob/);
  });

  it("has its finalizer dropped meanwhile", () => {
    const jobs = [aJobView({ outcome: "Complete", finishedAt: NOON })];
    expect(of({ jobs, ...after(1_000) })).toMatchObject({ do: "dropFinalizer" });
  });
});
