import { describe, expect, it } from "vitest";
import type { LockedCronJob, LockedCronJobStatus } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { createScheduleCache } from "../../src/controller/schedule-cache.ts";
import { difference } from "../../src/controller/status-difference.ts";
import { createStatusWriter } from "../../src/controller/status-writer.ts";
import type { TemplateVerdict } from "../../src/domain/conditions.ts";
import { rankOf } from "../../src/domain/election.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { aClient, conflict, notFound, rejected } from "../builders/client.ts";
import { aRecord } from "../builders/context.ts";
import { aLedger, aLockedCronJob, at, NOON } from "../builders/objects.ts";
import { manualTime } from "./manual-time.ts";

const KEY = "team/report";
const REPLICAS = ["a", "b"];
const [first, second] = REPLICAS.toSorted(
  (x, y) => rankOf(x, REPLICAS, KEY) - rankOf(y, REPLICAS, KEY),
) as [string, string];

interface Write {
  by: string;
  key: unknown;
  uid: string | undefined;
  status: Partial<LockedCronJobStatus>;
  options: unknown;
}

/** Replicas before one LockedCronJob, whose status every write changes. */
function setUp(o: { owner?: LockedCronJob; ledger?: Ledger; fails?: () => Promise<never> } = {}) {
  const time = manualTime(NOON);
  const world = {
    owner: o.owner ?? aLockedCronJob(),
    busy: false,
    quorum: true,
    template: undefined as TemplateVerdict | undefined,
    recheckAt: undefined as number | undefined,
  };
  const writes: Write[] = [];
  const steps: string[] = [];
  const writerOf = (replica: string, quorum?: boolean) =>
    createStatusWriter({
      sharedMutexNamespaces: [],
      validUntil: () => undefined,
      client: aClient({
        async patch(_: unknown, key: unknown, { body }: { body: object }, options: unknown) {
          const { metadata, status } = body as Pick<LockedCronJob, "metadata"> & {
            status: Write["status"];
          };
          writes.push({ by: replica, key, uid: metadata.uid, status, options });
          if (o.fails !== undefined) return o.fails();
          world.owner = { ...world.owner, status: { ...world.owner.status, ...status } };
          return world.owner;
        },
      }),
      lockedCronJobs: resources.lockedCronJobs,
      owners: { cached: () => world.owner, read: async () => world.owner },
      ledgers: { cached: () => (o.ledger === undefined ? undefined : aRecord(o.ledger)) },
      members: { live: () => REPLICAS },
      clock: time.clock,
      random: () => 0.5,
      replica,
      schedules: createScheduleCache(),
      lockBackend: () => ({ quorum: quorum ?? world.quorum, message: "backend" }),
      templates: {
        verdict: () => Promise.resolve(world.template),
        recheckAt: () => world.recheckAt,
        forget: () => undefined,
      },
      busy: () => world.busy,
      onStep: async (point) => void steps.push(point),
    });
  return { time, world, writes, steps, writerOf };
}

describe("the first in line", () => {
  it("writes the status at once, of this very object, after everything that is urgent", async () => {
    const { writes, steps, writerOf } = setUp({
      ledger: aLedger({ token: 4, lastLaunched: NOON }),
    });
    expect(await writerOf(first).reconcile(KEY)).toEqual({ kind: "done" });
    expect(writes).toMatchObject([
      {
        key: { namespace: "team", name: "report" },
        uid: "owner-1",
        status: { token: 4, lastScheduleTime: at(NOON) },
        options: { subresource: "status", priority: "low" },
      },
    ]);
    expect(steps).toEqual(["statusWritten"]);
  });

  it("writes nothing when it says so already", async () => {
    const { writes, writerOf } = setUp({ ledger: aLedger() });
    const writer = writerOf(first);
    await writer.reconcile(KEY);
    await writer.reconcile(KEY);
    expect(writes).toHaveLength(1);
  });

  it("writes only what is new", async () => {
    const { world, writes, writerOf } = setUp({ ledger: aLedger() });
    const writer = writerOf(first);
    await writer.reconcile(KEY);
    world.quorum = false;
    await writer.reconcile(KEY);
    expect(Object.keys(writes[1]?.status ?? {})).toEqual(["conditions"]);
  });

  it("comes back when a template that would be refused is to be looked at again", async () => {
    const { world, writes, writerOf } = setUp();
    world.template = { accepted: false, message: "exceeded quota" };
    world.recheckAt = NOON + 60_000;
    const writer = writerOf(first);
    expect(await writer.reconcile(KEY)).toEqual({ kind: "again", at: NOON + 60_000 });
    expect(writes[0]?.status.conditions).toContainEqual(
      expect.objectContaining({
        type: "TemplateAccepted",
        status: "False",
        reason: "TemplateRejected",
        message: "exceeded quota",
      }),
    );
    expect(await writer.reconcile(KEY)).toEqual({ kind: "again", at: NOON + 60_000 });
    expect(writes).toHaveLength(1);
  });

  it("waits while ticks do", async () => {
    const { world, writes, writerOf } = setUp();
    world.busy = true;
    expect(await writerOf(first).reconcile(KEY)).toEqual({ kind: "again", at: NOON + 1_500 });
    expect(writes).toEqual([]);
  });

  it("takes back nothing that a ledger has told while it does not know it: a lost one is made from that", async () => {
    const told = {
      active: [{ apiVersion: "batch/v1", kind: "Job", namespace: "team", name: "report-1" }],
      activeCount: 1,
      token: 4,
      lastTrigger: "a",
      backfill: { id: "b", cursor: at(NOON) },
      lastScheduleTime: at(NOON),
      lastSuccessfulTime: at(NOON),
      lastFailureTime: at(NOON),
      consecutiveFailures: 1,
      decisions: [],
      lock: { key: "lock", holder: "run" },
    };
    const { writes, writerOf } = setUp({ owner: { ...aLockedCronJob(), status: told } });
    await writerOf(first).reconcile(KEY);
    expect(writes).toHaveLength(1);
    for (const field of Object.keys(told)) expect(writes[0]?.status).not.toHaveProperty(field);
  });

  it("says nothing of a ledger that is a namesake's", async () => {
    const { writes, writerOf } = setUp({ ledger: aLedger({ owner: "owner-0", token: 9 }) });
    await writerOf(first).reconcile(KEY);
    expect(writes[0]?.status).not.toHaveProperty("token");
  });
});

describe("the second", () => {
  it("steps in when the first does not write", async () => {
    const { time, writes, writerOf } = setUp();
    const writer = writerOf(second);
    expect(await writer.reconcile(KEY)).toEqual({ kind: "again", at: NOON + 5_000 });
    await time.pass(5_000);
    expect(await writer.reconcile(KEY)).toEqual({ kind: "done" });
    expect(writes.map((w) => w.by)).toEqual([second]);
  });

  it("has nothing to write when the first has", async () => {
    const { time, writes, writerOf } = setUp();
    const writer = writerOf(second);
    await writer.reconcile(KEY);
    await writerOf(first).reconcile(KEY);
    await time.pass(5_000);
    await writer.reconcile(KEY);
    expect(writes.map((w) => w.by)).toEqual([first]);
  });

  it("gives the first its time anew for each change", async () => {
    const { time, writerOf } = setUp();
    const writer = writerOf(second);
    await writer.reconcile(KEY);
    await time.pass(5_000);
    await writer.reconcile(KEY);
    expect(await writer.reconcile(KEY)).toEqual({ kind: "again", at: NOON + 10_000 });
  });

  it("does not write over the first when it has another tz database, as in a rolling update", async () => {
    const { world, time, writes, writerOf } = setUp({ ledger: aLedger() });
    await writerOf(first).reconcile(KEY);
    world.owner = { ...world.owner, status: { ...world.owner.status, tzdata: "2099z" } };
    const behind = writerOf(second);
    await behind.reconcile(KEY);
    await time.pass(10_000);
    await behind.reconcile(KEY);
    expect(writes.map(({ by }) => by)).toEqual([first]);
  });

  it("does not write over the first when it sees Redis differently, or they would go on for ever", async () => {
    const { time, writes, writerOf } = setUp();
    await writerOf(first, true).reconcile(KEY);
    const other = writerOf(second, false);
    expect(await other.reconcile(KEY)).toMatchObject({ kind: "again" });
    await time.pass(5_000);
    expect(await other.reconcile(KEY)).toEqual({ kind: "done" });
    expect(writes.map((w) => w.by)).toEqual([first]);
  });
});

describe("nothing is written to a LockedCronJob", () => {
  it("that is being deleted", async () => {
    const owner = aLockedCronJob({}, { deletionTimestamp: at(NOON) });
    const { writes, writerOf } = setUp({ owner });
    expect(await writerOf(first).reconcile(KEY)).toEqual({ kind: "done" });
    expect(writes).toEqual([]);
  });

  it.each([
    ["that is gone", notFound],
    ["that is another one by now", conflict],
  ])("%s, and that is no failure", async (_, fails) => {
    const { writerOf } = setUp({ fails });
    expect(await writerOf(first).reconcile(KEY)).toEqual({ kind: "done" });
  });

  it("when the API server refuses, and that is one", async () => {
    const { writerOf } = setUp({ fails: () => rejected(403, "Forbidden") });
    await expect(writerOf(first).reconcile(KEY)).rejects.toThrow("Forbidden");
  });
});

describe("the difference between two statuses", () => {
  it.each<[what: string, old: LockedCronJobStatus, wanted: LockedCronJobStatus, patch: unknown]>([
    ["none", { token: 1, active: [] }, { active: [], token: 1 }, undefined],
    ["a field that is new", {}, { token: 1 }, { token: 1 }],
    [
      "a field that has changed",
      { token: 1, activeCount: 0 },
      { token: 2, activeCount: 0 },
      { token: 2 },
    ],
    ["a field that is no more", { token: 1, lock: { key: "k" } }, { token: 1 }, { lock: null }],
    [
      "a list, as a whole",
      { nextScheduleTimes: ["a"] },
      { nextScheduleTimes: ["b", "c"] },
      { nextScheduleTimes: ["b", "c"] },
    ],
    [
      "a field within one that stays",
      { lock: { key: "k", holder: "a", mutexes: ["m"], validUntil: "t" } },
      { lock: { key: "k", holder: "b" } },
      { lock: { holder: "b", mutexes: null, validUntil: null } },
    ],
  ])("%s", (_, old, wanted, patch) => {
    expect(difference(old, wanted)).toEqual(patch);
  });

  describe("leaves alone what another version has written:", () => {
    const condition = (type: string, status: "True" | "False" = "True") => ({
      type,
      status,
      reason: "Because",
      message: "",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    });

    it("fields", () => {
      const old = { token: 1, forecast: "sunny", lock: { key: "k", colour: "red" } };
      expect(difference(old, { token: 1, lock: { key: "k" } })).toBeUndefined();
      expect(difference(old, { token: 2, lock: { key: "k" } })).toEqual({ token: 2 });
    });

    it("conditions, wherever they stand", () => {
      const old = { conditions: [condition("Forecast"), condition("Ready"), condition("Stalled")] };
      const same = { conditions: [condition("Stalled"), condition("Ready")] };
      expect(difference(old, same)).toBeUndefined();
      const changed = { conditions: [condition("Suspended"), condition("Ready", "False")] };
      expect(difference(old, changed)).toEqual({
        conditions: [condition("Forecast"), condition("Ready", "False"), condition("Suspended")],
      });
    });
  });
});
