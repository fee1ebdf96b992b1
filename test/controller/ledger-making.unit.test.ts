import { describe, expect, it } from "vitest";
import { initLedger } from "../../src/controller/ledger-making.ts";
import type { LedgerState } from "../../src/domain/decide/index.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { rejected } from "../builders/client.ts";
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
/** As it is when it was only reserved. */
const EMPTY: LedgerState = { state: "orphan", why: "empty", held: false };

function making(parts: {
  owner?: ReturnType<typeof aLockedCronJob>;
  jobs?: ReturnType<typeof aJobView>[];
  old?: Ledger;
  /** What stands in the Lease instead of a ledger. */
  contents?: LedgerState;
  leaseToken?: number;
  last?: { uid: string; ledger: Ledger };
}) {
  const written: Ledger[] = [];
  const record = aRecord(parts.old ?? aLedger(), {
    token: parts.leaseToken ?? parts.old?.token ?? 0,
    ...(parts.old === undefined ? { contents: parts.contents ?? EMPTY } : {}),
  });
  const save = async (ledger: Ledger) => {
    written.push(ledger);
    return aRecord(ledger);
  };
  const said: string[] = [];
  const context = aContext({
    events: { event: (_, __, reason, message) => void said.push(`${reason}: ${message}`) },
    owners: { read: async () => parts.owner ?? aLockedCronJob() },
    jobs: { list: async () => parts.jobs ?? [] },
    locks: { release: async () => undefined },
    ledgers: {
      cached: () => record,
      read: async () => record,
      last: () => parts.last,
      write: (_, ledger) => save(ledger),
    },
  });
  return { context, written, said };
}

describe("a ledger that is made", () => {
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

  it("goes on counting failures from what the status tells", async () => {
    const status = {
      lastSuccessfulTime: at(NOON - HOUR),
      lastFailureTime: at(NOON),
      consecutiveFailures: 3,
    };
    const { context, written } = making({ owner: { ...aLockedCronJob(), status } });
    await initLedger(context, KEY);
    expect(written[0]).toMatchObject({
      lastSuccess: NOON - HOUR,
      lastFailure: NOON,
      consecutiveFailures: 3,
    });
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

  it("is reserved first: what it is made from is read when its Lease is there", async () => {
    const reserved: string[] = [];
    const context = aContext({
      owners: { read: async () => aLockedCronJob() },
      ledgers: {
        cached: () => undefined,
        async reserve({ metadata }) {
          reserved.push(metadata.uid);
          return aRecord(aLedger());
        },
      },
    });
    expect(await initLedger(context, KEY)).toMatchObject({ next: "decide", outcome: "reserved" });
    expect(reserved).toEqual(["owner-1"]);
  });

  it("keeps its count within the Lease's", async () => {
    const owner = { ...aLockedCronJob(), status: { token: 2 ** 40 } };
    const { context, written } = making({ owner, leaseToken: 2 ** 31 - 1 });
    await initLedger(context, KEY);
    expect(written[0]?.token).toBe(2 ** 40);
  });
});

describe("a ledger that was lost", () => {
  const last = aLedger({
    lastTick: NOON + HOUR,
    lastLaunched: NOON,
    lastSuccess: NOON + 1_000,
    anchor: NOON - MINUTE,
    token: 7,
    missed: 3,
  });

  it("is made from what this process still knows of it, when that is more than the status tells", async () => {
    const owner = { ...aLockedCronJob(), status: { lastScheduleTime: at(NOON - HOUR), token: 5 } };
    const { context, written } = making({ owner, last: { uid: "lease-0", ledger: last } });
    await initLedger(context, KEY);
    expect(written).toEqual([last]);
  });

  it("of which the status tells more is behind", async () => {
    const owner = {
      ...aLockedCronJob(),
      status: { lastScheduleTime: at(NOON + 2 * HOUR), token: 9 },
    };
    const { context, written } = making({ owner, last: { uid: "lease-0", ledger: last } });
    await initLedger(context, KEY);
    expect(written[0]).toMatchObject({ lastTick: NOON + 2 * HOUR, token: 9, missed: 3 });
  });

  it("had not decided a tick that it had claimed and that brought no Job", async () => {
    const ledger = { ...last, lastTick: NOON, lastLaunched: NOON - HOUR, runs: [aRun()] };
    const { context, written } = making({ last: { uid: "lease-0", ledger } });
    await initLedger(context, KEY);
    expect(written[0]).toMatchObject({ lastTick: NOON - 1, lastLaunched: NOON - HOUR, runs: [] });
  });

  it("of a namesake tells nothing", async () => {
    const ledger = { ...last, owner: "owner-0" };
    const { context, written } = making({ last: { uid: "lease-0", ledger } });
    await initLedger(context, KEY);
    expect(written).toEqual([aLedger()]);
  });
});

describe("a garbled ledger", () => {
  const garbled = (held: boolean): LedgerState => ({ state: "orphan", why: "garbled", held });
  const last = aLedger({ lastTick: NOON, token: 4, runs: [aRun()] });

  it("that knew of no pending POST is made anew", async () => {
    const { context, written } = making({ contents: garbled(false) });
    await initLedger(context, KEY);
    expect(written).toEqual([aLedger()]);
  });

  it("that did is put back as it was, by whoever has read it", async () => {
    const { context, written } = making({
      contents: garbled(true),
      leaseToken: 4,
      last: { uid: "lease-1", ledger: last },
    });
    await initLedger(context, KEY);
    expect(written).toEqual([last]);
  });

  it.each<[what: string, last: { uid: string; ledger: Ledger } | undefined]>([
    ["when nobody has", undefined],
    ["when it was another Lease's", { uid: "lease-0", ledger: last }],
    ["when a tick was claimed since", { uid: "lease-1", ledger: { ...last, token: 3 } }],
  ])("that did is left alone %s, and says what to do", async (_, known) => {
    const { context, written, said } = making({
      contents: garbled(true),
      leaseToken: 4,
      ...(known === undefined ? {} : { last: known }),
    });
    expect(await initLedger(context, KEY)).toMatchObject({ next: "again" });
    expect(written).toEqual([]);
    expect(said).toEqual([expect.stringMatching(/^LedgerUnreadable: .*lockedcron.io\/launch/)]);
  });
});

it("a ledger that lost the labels by which it is seen gets them back, and nothing of it is lost", async () => {
  const ledger = aLedger({ token: 4, lastTick: NOON });
  const record = aRecord(ledger);
  const written: unknown[] = [];
  const said: string[] = [];
  const context = aContext({
    events: { event: (_, __, reason) => void said.push(reason) },
    owners: { read: async () => aLockedCronJob() },
    ledgers: {
      cached: () => undefined,
      read: async () => record,
      reserve: () => rejected(409, "AlreadyExists"),
      write: async (onTopOf, next) => {
        written.push([onTopOf, next]);
        return record;
      },
    },
  });
  expect(await initLedger(context, KEY)).toMatchObject({ next: "again", at: NOON + 2_000 });
  expect(written).toEqual([[record, ledger]]);
  expect(said).toEqual(["LabelRestored"]);
});
