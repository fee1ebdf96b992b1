import { describe, expect, it } from "vitest";
import { LAUNCH_FINALIZER, LEDGER_ANNOTATION, ledgerName } from "../../src/api/names.ts";
import type { Lease, ObjectMeta } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { createLedgerStore, type LedgerStore } from "../../src/controller/ledger-store.ts";
import type { LedgerRecord } from "../../src/controller/ports.ts";
import { serializeLedger } from "../../src/domain/ledger-json.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { aClient, notFound } from "../builders/client.ts";
import {
  aLedger,
  aLockedCronJob,
  anAttempt,
  aRun,
  aStartedRun,
  at,
  NOON,
} from "../builders/objects.ts";

const KEY = "team/report";
const deletionTimestamp = at(NOON);

function aLease(ledger: Ledger | string = aLedger(), metadata: Partial<ObjectMeta> = {}): Lease {
  const text = typeof ledger === "string" ? ledger : serializeLedger(ledger);
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: ledgerName("report"),
      namespace: "team",
      uid: "lease-1",
      resourceVersion: "1",
      creationTimestamp: at(NOON),
      annotations: { [LEDGER_ANNOTATION]: text },
      ...metadata,
    },
    spec: { leaseTransitions: typeof ledger === "string" ? 9 : ledger.token },
  };
}

interface Rig {
  store: LedgerStore;
  /** Every body that was sent. */
  sent: Lease[];
  changed: string[];
  gone: Ledger[];
}

/** A store whose writes succeed with the next resourceVersion. */
function aStore(calls: Parameters<typeof aClient>[0] = {}): Rig {
  const sent: Lease[] = [];
  const changed: string[] = [];
  const gone: Ledger[] = [];
  const write = async (_: unknown, body: Lease): Promise<Lease> => {
    sent.push(body);
    const resourceVersion = String(Number(body.metadata.resourceVersion ?? 100) + 1);
    return { ...body, metadata: { ...body.metadata, resourceVersion } };
  };
  const store = createLedgerStore({
    client: aClient({ create: write, update: write, ...calls }),
    leases: resources.leases,
    clock: { now: () => NOON, monotonic: () => 0 },
    onChange: (key) => void changed.push(key),
    onGone: (_, last) => void gone.push(last),
  });
  return { store, sent, changed, gone };
}

function known(store: LedgerStore): LedgerRecord {
  const record = store.cached(KEY);
  if (record === undefined) throw new Error("the store does not know the ledger");
  return record;
}

it("a write asks the server to keep no account of fields, whatever it has kept so far", async () => {
  const { store, sent } = aStore();
  const tracked = { managedFields: [{ manager: "x" }] };
  store.observe(aLease(aLedger(), tracked as Partial<ObjectMeta>));
  await store.write(known(store), aLedger({ token: 1 }));
  expect(sent).toMatchObject([{ metadata: { managedFields: [{}] } }]);
});

describe("the watch", () => {
  it("tells of ledgers", () => {
    const { store, changed } = aStore();
    store.observe(aLease(aLedger({ token: 3 })));
    expect(store.cached(KEY)).toMatchObject({
      name: "report",
      uid: "lease-1",
      token: 3,
      heldInDeletion: false,
      contents: { state: "present", ledger: aLedger({ token: 3 }) },
    });
    expect([...store.keys()]).toEqual([KEY]);
    expect(changed).toEqual([KEY]);
  });

  it("is not believed when it is behind", () => {
    const { store } = aStore();
    store.observe(aLease(aLedger({ token: 2 }), { resourceVersion: "10" }));
    store.observe(aLease(aLedger({ token: 1 }), { resourceVersion: "9" }));
    expect(known(store).token).toBe(2);
  });

  it("tells of no other Leases", () => {
    const { store, changed } = aStore();
    store.observe(aLease(aLedger(), { name: "some-controller" }));
    store.observeDeleted(aLease(aLedger(), { name: "some-controller" }));
    expect(changed).toEqual([]);
  });

  it("ends what is gone, and hands on what it said last", () => {
    const { store, gone } = aStore();
    store.observe(aLease());
    store.observeDeleted(aLease(aLedger({ token: 5 })));
    expect(store.cached(KEY)).toBeUndefined();
    expect(gone).toEqual([aLedger({ token: 5 })]);
  });

  it("does not end a ledger that was made anew since", () => {
    const { store } = aStore();
    store.observe(aLease(aLedger(), { uid: "lease-2", resourceVersion: "5" }));
    store.observeDeleted(aLease(aLedger(), { resourceVersion: "4" }));
    expect(known(store).uid).toBe("lease-2");
  });
});

describe("contents that cannot be read", () => {
  it("tell by their finalizer that they knew of a pending POST; what was read before is kept", () => {
    const { store } = aStore();
    const before = aLedger({ token: 9 });
    store.observe(aLease(before));
    store.observe(aLease("{", { resourceVersion: "2", finalizers: [LAUNCH_FINALIZER] }));
    expect(known(store).contents).toEqual({ state: "orphan", why: "garbled", held: true });
    expect(store.last(KEY)).toEqual({ uid: "lease-1", ledger: before });
    store.observeDeleted(aLease("{", { resourceVersion: "3" }));
    expect(store.last(KEY)?.ledger).toEqual(before);
    store.forget(KEY);
    expect(store.last(KEY)).toBeUndefined();
  });

  it.each([
    ["nonsense is to be made anew", "{", { state: "orphan", why: "garbled", held: false }],
    ["nothing is to be filled", "", { state: "orphan", why: "empty", held: false }],
    [
      "what a newer release has written is left alone",
      JSON.stringify({ version: 99 }),
      expect.objectContaining({ state: "newer" }),
    ],
  ])("%s; the token is known all the same", (_, text, want) => {
    const { store } = aStore();
    store.observe(aLease(text));
    expect(known(store)).toMatchObject({ contents: want, token: 9 });
  });
});

describe("open runs", () => {
  it("are found, and those with attempts of one process", () => {
    const { store } = aStore();
    store.observe(aLease(aLedger({ runs: [aRun({ attempts: [anAttempt({ by: "me/1" })] })] })));
    expect([...store.withRuns()]).toEqual([KEY]);
    expect(store.withAttemptsOf((by) => by === "me/1")).toEqual([KEY]);
    expect(store.withAttemptsOf((by) => by === "me/2")).toEqual([]);
    const settled = aLedger({ runs: [aStartedRun({ attempts: [anAttempt({ settled: true })] })] });
    store.observe(aLease(settled, { resourceVersion: "2" }));
    expect([...store.withRuns()]).toEqual([KEY]);
    expect(store.withAttemptsOf((by) => by === "me/1")).toEqual([]);
    store.observe(aLease(aLedger(), { resourceVersion: "3" }));
    expect([...store.withRuns()]).toEqual([]);
  });
});

describe("a read", () => {
  it("teaches the cache what it finds", async () => {
    const { store } = aStore({ get: async () => aLease(aLedger({ token: 4 })) });
    expect(await store.read(KEY)).toMatchObject({ token: 4 });
    expect(known(store).token).toBe(4);
  });

  it("teaches it of nothing as well", async () => {
    const { store } = aStore({ get: notFound });
    store.observe(aLease());
    expect(await store.read(KEY)).toBeUndefined();
    expect(store.cached(KEY)).toBeUndefined();
  });

  it("that the watch has overtaken with the ledger's end does not bring it back", async () => {
    const { store } = aStore({
      async get() {
        store.observeDeleted(aLease());
        return aLease();
      },
    });
    await store.read(KEY);
    expect(store.cached(KEY)).toBeUndefined();
  });
});

describe("a ledger that is made", () => {
  it("is owned by its LockedCronJob, and found by the watch", async () => {
    const { store, sent } = aStore();
    await store.create(aLockedCronJob(), aLedger({ token: 2 }));
    expect(sent).toMatchObject([
      {
        metadata: {
          name: "lockedcron-report",
          namespace: "team",
          labels: { "lockedcron.io/name": "report", "lockedcron.io/component": "ledger" },
          ownerReferences: [{ kind: "LockedCronJob", uid: "owner-1", controller: true }],
          finalizers: [],
        },
        spec: { leaseTransitions: 2, holderIdentity: null },
      },
    ]);
    expect(known(store).token).toBe(2);
  });
});

describe("a write", () => {
  async function writing(ledger: Ledger, metadata: Partial<ObjectMeta> = {}) {
    const rig = aStore();
    rig.store.observe(aLease(aLedger(), metadata));
    const written = await rig.store.write(known(rig.store), ledger);
    return { ...rig, written, body: rig.sent[0] as Lease };
  }

  it("insists on the version that was read, and on the very Lease", async () => {
    const { body } = await writing(aLedger({ token: 1 }), { resourceVersion: "7" });
    expect(body.metadata).toMatchObject({ uid: "lease-1", resourceVersion: "7" });
  });

  it("is known at once, with its version", async () => {
    const { store, written } = await writing(aLedger({ token: 1 }));
    expect(written.resourceVersion).toBe("2");
    expect(store.cached(KEY)).toEqual(written);
  });

  it("says who holds the lock, and the newest token, in the Lease's own fields", async () => {
    const run = aRun({ runId: "newest" });
    const { body } = await writing(aLedger({ token: 6, runs: [aRun(), run] }));
    expect(body.spec).toMatchObject({
      holderIdentity: "newest",
      leaseTransitions: 6,
      renewTime: "2026-01-01T12:00:00.000000Z",
    });
  });

  it("leaves what others have put on the Lease", async () => {
    const labels = { team: "a" };
    const finalizers = ["example.com/x"];
    const { body } = await writing(aLedger(), { labels, finalizers });
    expect(body.metadata.labels).toMatchObject({ ...labels, "lockedcron.io/name": "report" });
    expect(body.metadata.finalizers).toEqual(finalizers);
  });

  it("hands the Lease over when it was a namesake's", async () => {
    const { store, sent } = aStore();
    store.observe(aLease(aLedger(), { ownerReferences: [] }));
    await store.write(known(store), aLedger(), aLockedCronJob({}, { uid: "owner-2" }));
    expect(sent[0]?.metadata.ownerReferences).toMatchObject([{ uid: "owner-2" }]);
  });

  it.each<[situation: string, ledger: Ledger, metadata: Partial<ObjectMeta>, held: boolean]>([
    ["puts it on while a POST may still arrive", aLedger({ runs: [aRun()] }), {}, true],
    [
      "takes it off when all is settled",
      aLedger({ runs: [aStartedRun()] }),
      { finalizers: [LAUNCH_FINALIZER] },
      false,
    ],
    [
      "keeps it on one that is being deleted, whatever is settled: its ticks are told nowhere else",
      aLedger(),
      { finalizers: [LAUNCH_FINALIZER], deletionTimestamp },
      true,
    ],
    [
      "cannot put it on one that others keep in deletion, and need not",
      aLedger(),
      { finalizers: ["foregroundDeletion"], deletionTimestamp },
      false,
    ],
  ])("of the finalizer: %s", async (_, ledger, metadata, held) => {
    const { body } = await writing(ledger, metadata);
    expect(body.metadata.finalizers?.includes(LAUNCH_FINALIZER)).toBe(held);
  });

  it("does not take the place of what the watch told meanwhile", async () => {
    const { store } = aStore({
      async update(_: unknown, body: Lease) {
        const metadata = { ...body.metadata, resourceVersion: "2" };
        store.observe(aLease(aLedger({ token: 8 }), { resourceVersion: "3" }));
        return { ...body, metadata };
      },
    });
    store.observe(aLease());
    await store.write(known(store), aLedger({ token: 7 }));
    expect(known(store)).toMatchObject({ resourceVersion: "3", token: 8 });
  });
});

describe("a ledger that is held in deletion", () => {
  const metadata = { finalizers: [LAUNCH_FINALIZER], deletionTimestamp };

  it("says so", () => {
    const { store } = aStore();
    store.observe(aLease(aLedger(), metadata));
    expect(known(store).heldInDeletion).toBe(true);
  });

  it("is forgotten when it is let go: with the finalizer goes the Lease", async () => {
    const { store, sent } = aStore();
    store.observe(aLease(aLedger(), metadata));
    await store.letGo(known(store));
    expect(sent).toMatchObject([{ metadata: { finalizers: [], resourceVersion: "1" } }]);
    expect(store.cached(KEY)).toBeUndefined();
  });

  it("is not forgotten while somebody else's finalizer keeps it", async () => {
    const { store } = aStore();
    store.observe(aLease(aLedger(), { ...metadata, finalizers: [LAUNCH_FINALIZER, "other/x"] }));
    await store.letGo(known(store));
    expect(known(store)).toMatchObject({ heldInDeletion: false, resourceVersion: "2" });
  });
});
