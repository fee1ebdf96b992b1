import { describe, expect, it } from "vitest";
import type { LockSpec } from "../../src/api/types.ts";
import { ledgerName, mutexLeaseName, nameOfLedger, nameOfMutexLease } from "../../src/api/names.ts";
import { parseLedger, serializeLedger } from "../../src/domain/ledger-json.ts";
import { endRun, letLockGo } from "../../src/domain/ledger-end.ts";
import { grant, keepWaiting } from "../../src/domain/ledger-locks.ts";
import { claim } from "../../src/domain/claim.ts";
import { activeRuns, findRun, isOver } from "../../src/domain/ledger.ts";
import {
  holderOf,
  leaseMsOf,
  locksOf,
  mutexesOf,
  parseHolder,
} from "../../src/domain/lock-terms.ts";
import { aDecision, aLedger, aLockedCronJob, anAttempt, aRun, NOON } from "../builders/objects.ts";

const BY = { dueAt: NOON, now: NOON + 1_000, by: "me/1" };
const withLock = (lock: LockSpec, more = {}) => aLockedCronJob({ lock, ...more });

describe("mutexes", () => {
  const named = (mutexes: string[], shared: string[] = []) =>
    mutexesOf(withLock({ mutexes }), shared);

  it.each<[situation: string, given: string[], shared: string[], want: string[]]>([
    ["without a namespace are of the own one", ["db"], [], ["team/db"]],
    ["of the own namespace may say so", ["team/db"], [], ["team/db"]],
    ["are the same with and without it", ["db", "team/db"], [], ["team/db"]],
    [
      "are in the one order that all keep",
      ["b", "pool/z", "a"],
      ["pool"],
      ["pool/z", "team/a", "team/b"],
    ],
  ])("%s", (_, given, shared, want) => {
    expect(named(given, shared)).toEqual({ ok: true, mutexes: want });
  });

  it("of a namespace that is not shared are refused by name, with the way out", () => {
    expect(named(["db", "pool/z"], ["other"])).toEqual({
      ok: false,
      reason: "MutexNotAllowed",
      message: expect.stringMatching(/pool\/z .*--shared-mutex-namespaces=pool/),
    });
  });

  it("never have the fence that is a LockedCronJob's ledger", () => {
    expect(nameOfLedger(mutexLeaseName("db"))).toBeUndefined();
    expect(nameOfMutexLease(ledgerName("mutex.db"))).toBeUndefined();
    expect(nameOfMutexLease(mutexLeaseName("db"))).toBe("db");
  });

  it("name their holder by its claim", () => {
    const text = holderOf("team/report", "report-29.owner-1#n0nce");
    expect(parseHolder(text)).toEqual({
      key: "team/report",
      lockValue: "report-29.owner-1#n0nce",
      runId: "report-29.owner-1",
      jobName: "report-29",
    });
  });

  it.each(["", "somebody", "a/b", "a/b/c", "a/b/c-1.u#n/d"])(
    "held by %j are nobody's of ours",
    (text) => {
      expect(parseHolder(text)).toBeUndefined();
    },
  );
});

describe("the locks of a run", () => {
  it("say nothing of what is at its default", () => {
    const lock = {
      leaseSeconds: 30,
      waitSeconds: 0,
      atLeastSeconds: 0,
      onLost: "Continue",
    } as const;
    expect(locksOf(withLock(lock), [], BY)).toEqual({});
  });

  it("are those of the spec when the tick was claimed", () => {
    const lock = {
      leaseSeconds: 60,
      atLeastSeconds: 5,
      atMostSeconds: 90,
      onLost: "Delete",
    } as const;
    expect(locksOf(withLock(lock), [], BY)).toEqual({ lock, lockedAt: BY.now });
    expect(leaseMsOf(lock)).toBe(60_000);
  });

  it.each<[situation: string, lock: LockSpec, more: object, until: number]>([
    ["not at all", {}, {}, BY.now],
    ["for waitSeconds", { waitSeconds: 60 }, {}, BY.now + 60_000],
    [
      "for startingDeadlineSeconds at most",
      { waitSeconds: 60 },
      { startingDeadlineSeconds: 20 },
      NOON + 20_000,
    ],
  ])("wait for mutexes %s", (_, lock, more, until) => {
    const { waiting } = locksOf(withLock(lock, more), ["team/db"], BY);
    expect(waiting).toEqual({ by: "me/1", since: BY.now, until, retryMs: 1_000 });
  });
});

describe("the time to wait for mutexes", () => {
  const spec = { waitSeconds: 60 };
  const more = { startingDeadlineSeconds: 20 };

  it("of a tick put off by jitter ends so long after it was due", () => {
    const { waiting } = locksOf(withLock(spec, more), ["team/db"], { ...BY, dueAt: BY.now });
    expect(waiting?.until).toBe(BY.now + 20_000);
  });

  it("of a run that somebody asked for, which may be of a past tick, ends by waitSeconds alone", () => {
    const { waiting } = locksOf(withLock(spec, more), ["team/db"], { ...BY, dueAt: undefined });
    expect(waiting?.until).toBe(BY.now + 60_000);
  });
});

describe("in the ledger", () => {
  const waiting = { by: "me/1", since: NOON, until: NOON + 60_000, retryMs: 1_000 };
  const lock = { mutexes: ["team/db"] };
  const waits = aRun({ attempts: [], waiting, lock });
  const id = waits.runId;

  it("a run with mutexes is claimed without an attempt", () => {
    const claimed = claim(aLedger(), {
      tick: NOON,
      runId: id,
      jobName: "report-1",
      lockKey: "k",
      lockValue: "v",
      by: "me/1",
      why: "Due",
      decisions: [],
      missed: 0,
      locks: { lock, waiting },
    });
    expect(findRun(claimed, id)).toMatchObject({ attempts: [], lock, waiting });
  });

  it("a run that is granted has its first attempt and the token of its fences", () => {
    const granted = grant(aLedger({ token: 3, runs: [waits] }), id, "you/1", 9);
    expect(granted.token).toBe(9);
    expect(findRun(granted, id)).toMatchObject({
      token: 9,
      attempts: [anAttempt({ by: "you/1" })],
    });
    expect(findRun(granted, id)?.waiting).toBeUndefined();
  });

  it("a run that waits for nothing, or whose token would go back, is not granted", () => {
    expect(() => grant(aLedger({ runs: [aRun()] }), id, "me/1", 9)).toThrow("does not wait");
    expect(() => grant(aLedger({ runs: [{ ...waits, token: 5 }] }), id, "me/1", 4)).toThrow(
      "go back",
    );
  });

  it("a run says what it waits for, and in decisions since when", () => {
    const on = { mutex: "team/db", reason: "MutexBusy", message: "busy" };
    const kept = keepWaiting(
      aLedger({ runs: [waits] }),
      id,
      on,
      aDecision({ decision: "Waiting" }),
    );
    expect(findRun(kept, id)?.waiting).toEqual({ ...waiting, on });
    expect(kept.decisions.map((d) => d.decision)).toEqual(["Waiting"]);
  });

  it("has a version that an older replica leaves alone, as long as somebody waits", () => {
    const version = (runs: (typeof waits)[]) =>
      (JSON.parse(serializeLedger(aLedger({ runs }))) as { version: number }).version;
    expect(version([waits])).toBe(2);
    expect(version([aRun({ lock })])).toBe(1);
    expect(parseLedger(serializeLedger(aLedger({ runs: [waits] })))).toMatchObject({ ok: true });
  });

  it.each([
    ["waits with an attempt", { attempts: [anAttempt()] }],
    ["has neither an attempt nor a reason to wait", { waiting: undefined }],
    ["waits for no one knows how long", { waiting: { ...waiting, until: "soon" } }],
    ["has terms that make no sense", { lock: { mutexes: "team/db" } }],
  ])("a run that %s is garbled", (_, fields) => {
    const text = JSON.stringify(aLedger({ runs: [{ ...waits, ...fields } as never] }));
    expect(parseLedger(text)).toMatchObject({ ok: false, reason: "garbled" });
  });

  it("atLeastSeconds keep a run that has ended, and it excludes others until then", () => {
    const run = aRun({ attempts: [anAttempt({ settled: true })], jobUID: "j" });
    const ended = endRun(aLedger({ runs: [run] }), run.runId, {
      decision: aDecision({ decision: "Finished" }),
      success: NOON,
      keptUntil: NOON + 5_000,
    });
    expect(ended.lastSuccess).toBe(NOON);
    expect(activeRuns(ended).map((r) => [r.ended, isOver(r)])).toEqual([[true, false]]);
    expect(letLockGo(ended, run.runId).runs).toEqual([]);
  });

  it("and its attempts keep it after that", () => {
    const run = aRun({ ended: true, keptUntil: NOON, jobUID: "j" });
    const [left] = letLockGo(aLedger({ runs: [run] }), run.runId).runs;
    expect(left).toMatchObject({ ended: true });
    expect(left !== undefined && isOver(left)).toBe(true);
  });
});
