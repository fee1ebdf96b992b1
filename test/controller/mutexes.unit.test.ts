import { describe, expect, it } from "vitest";
import { createLockLost } from "../../src/controller/lock-lost.ts";
import { createMutexBook } from "../../src/controller/mutexes.ts";
import { createMutexSweep } from "../../src/controller/mutex-sweep.ts";
import type { MutexRecord } from "../../src/controller/ports.ts";
import { holderOf } from "../../src/domain/lock-terms.ts";
import type { Ledger, Run } from "../../src/domain/ledger.ts";
import { aRecord } from "../builders/context.ts";
import { aJobView, aLedger, aLockedCronJob, aRun, aStartedRun } from "../builders/objects.ts";

const KEY = "team/report";
const LOCK_VALUE = "report-29.owner-1#n";
const HOLDER = holderOf(KEY, LOCK_VALUE);
const run = (fields: Partial<Run> = {}): Run => aStartedRun({ lockValue: LOCK_VALUE, ...fields });

const aFence = (fields: Partial<MutexRecord> = {}): MutexRecord => ({
  mutex: "team/db",
  uid: "u",
  resourceVersion: "7",
  holder: HOLDER,
  token: 3,
  foreign: false,
  ...fields,
});

function aBook(o: {
  ledger?: Ledger | "newer";
  job?: Parameters<typeof aJobView>[0];
  livePods?: boolean;
  fences?: MutexRecord[];
}) {
  const writes: { mutex: string; version: string | undefined; holder: string | undefined }[] = [];
  const released: [key: string, value: string][] = [];
  const contents = { state: "newer" as const, message: "" };
  const record =
    o.ledger === undefined
      ? undefined
      : o.ledger === "newer"
        ? aRecord(aLedger(), { contents })
        : aRecord(o.ledger);
  const all = o.fences ?? [];
  const book = createMutexBook({
    fences: {
      cached: (mutex) => all.find((f) => f.mutex === mutex),
      read: async (mutex) => all.find((f) => f.mutex === mutex),
      async write(mutex, old, { holder, token }) {
        writes.push({ mutex, version: old?.resourceVersion, holder });
        return aFence({ mutex, holder, token });
      },
    },
    ledgers: { cached: () => record, read: async () => record },
    jobs: {
      read: async () => (o.job === undefined ? undefined : aJobView(o.job)),
      hasLivePodsNamed: async () => o.livePods ?? false,
    },
    locks: { release: async (key, value) => released.push([key, value]) },
    lockPrefix: "lockedcron:c1",
  });
  return { book, writes, released };
}

describe("the holder of a mutex", () => {
  const runId = "report-29.owner-1";
  it.each<[situation: string, world: Parameters<typeof aBook>[0], over: boolean]>([
    ["lives while its ledger has the run", { ledger: aLedger({ runs: [run()] }) }, false],
    [
      "is over when its ledger says so",
      { ledger: aLedger({ runs: [run({ ended: true })] }) },
      true,
    ],
    [
      "lives while atLeastSeconds keep it",
      { ledger: aLedger({ runs: [run({ ended: true, keptUntil: 1 })] }) },
      false,
    ],
    ["is over when its ledger has it no more", { ledger: aLedger() }, true],
    ["is over when all of it is gone", {}, true],
    ["lives while a Job of it runs, though no ledger knows it", { job: { runId } }, false],
    ["is over with its Job", { job: { runId, outcome: "Complete" } }, true],
    ["lives while a pod of it may live", { livePods: true }, false],
    ["lives in a ledger that cannot be read", { ledger: "newer" }, false],
    [
      "is not the same as a later claim of its tick",
      { ledger: aLedger({ runs: [run({ lockValue: "report-29.owner-1#other" })] }) },
      true,
    ],
  ])("%s", async (_, world, over) => {
    expect(await aBook(world).book.isOver(HOLDER)).toBe(over);
  });

  it("that no operator has written is never over", async () => {
    expect(await aBook({}).book.isOver("somebody")).toBe(false);
  });
});

describe("a mutex is busy by the caches", () => {
  const lock = { mutexes: ["team/db"] };
  const other = aRun({ lockValue: "report-30.owner-1#x", attempts: [], lock, tick: 2 });
  const waiting = { by: "me/1", since: 0, until: 9, retryMs: 1 };

  it("when its holder lives, and not when it is over", () => {
    const of = (ended: boolean) =>
      aBook({ ledger: aLedger({ runs: [run({ ended })] }), fences: [aFence()] }).book;
    expect(of(false).busyOn("team/other", aLedger({ runs: [other] }), other)).toEqual({
      mutex: "team/db",
    });
    expect(of(true).busyOn("team/other", aLedger({ runs: [other] }), other)).toBeUndefined();
  });

  it("not when it is foreign: nothing would tell that it has gone", () => {
    const { book } = aBook({
      ledger: aLedger({ runs: [run()] }),
      fences: [aFence({ foreign: true })],
    });
    expect(book.busyOn("team/other", aLedger({ runs: [other] }), other)).toBeUndefined();
  });

  it("when an elder run of the same LockedCronJob waits for it", () => {
    const elder = { ...other, runId: "elder", waiting };
    const younger = { ...other, waiting };
    const ledger = aLedger({ runs: [elder, younger] });
    const { book } = aBook({});
    expect(book.busyOn(KEY, ledger, younger)).toEqual({ mutex: "team/db" });
    expect(book.busyOn(KEY, ledger, elder)).toBeUndefined();
  });
});

it("a run that is over frees its own fences and no other", async () => {
  const fences = [aFence(), aFence({ mutex: "team/b", holder: holderOf("team/x", "x-1.u#n") })];
  const { book, writes, released } = aBook({ fences });
  await book.freeAllOf(KEY, run({ lock: { mutexes: ["team/b", "team/db", "team/none"] } }));
  expect(writes).toEqual([{ mutex: "team/db", version: "7", holder: undefined }]);
  expect(released).toHaveLength(3);
});

it("whoever frees the fence of a run that is over releases what it has left in Redis, by its own value", async () => {
  const { book, writes, released } = aBook({ fences: [aFence()] });
  await book.free(aFence());
  expect(writes).toHaveLength(1);
  expect(released).toEqual([["lockedcron:c1:mutex:team/db", LOCK_VALUE]]);
});

describe("the sweep", () => {
  const sweepOf = (over: boolean, members: string[]) => {
    const freed: string[] = [];
    const sweep = createMutexSweep({
      held: () => [aFence()],
      mutexes: {
        livesByCache: () => false,
        isOver: async () => over,
        free: async (fence) => {
          freed.push(fence.resourceVersion);
          return fence;
        },
      },
      members: { live: () => members },
      replica: "a",
      timers: { after: () => () => undefined },
    });
    return { sweep, freed };
  };

  it("frees a fence whose run is over", async () => {
    const { sweep, freed } = sweepOf(true, ["a"]);
    await sweep.round();
    expect(freed).toEqual(["7"]);
  });

  it("leaves one whose run may live", async () => {
    const { sweep, freed } = sweepOf(false, ["a"]);
    await sweep.round();
    expect(freed).toEqual([]);
  });

  it("leaves a round to each replica that ranks before it", async () => {
    const others = ["b", "c", "d", "e", "f", "g"];
    const { sweep, freed } = sweepOf(true, ["a", ...others]);
    let rounds = 0;
    while (freed.length === 0 && rounds++ < 10) await sweep.round();
    expect(rounds).toBeGreaterThan(1);
  });
});

describe("a lock that somebody else has taken", () => {
  const lostWith = async (onLost?: "Suspend" | "Delete") => {
    const said: string[] = [];
    const done: string[] = [];
    const lost = createLockLost({
      owners: { cached: () => aLockedCronJob() },
      jobs: {
        cached: () => [aJobView()],
        suspend: async ({ name }) => void done.push(`suspend ${name}`),
        delete: async ({ name }) => void done.push(`delete ${name}`),
      },
      events: { event: (_, __, reason, message) => said.push(`${reason}: ${message}`) },
      onTrouble: () => undefined,
    });
    const held = aStartedRun(onLost === undefined ? {} : { lock: { onLost } });
    lost(KEY, held, held.lockKey);
    return { said: said.join(), done };
  };

  it("is told, and the run goes on", async () => {
    const { said, done } = await lostWith();
    expect(said).toMatch(/^LockLost: .*the job goes on/);
    expect(done).toEqual([]);
  });

  it.each(["Suspend", "Delete"] as const)("ends the run as onLost says: %s", async (onLost) => {
    const { said, done } = await lostWith(onLost);
    expect(said).toContain("as lock.onLost says");
    expect(done).toEqual([`${onLost.toLowerCase()} ${aJobView().name}`]);
  });
});
