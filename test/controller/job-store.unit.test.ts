import { describe, expect, it } from "vitest";
import { LAUNCH_FINALIZER, NAME_LABEL } from "../../src/api/names.ts";
import type { Job } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { createJobStore, type JobStore } from "../../src/controller/job-store.ts";
import type { JobView } from "../../src/domain/job.ts";
import { aClient, conflict, notFound } from "../builders/client.ts";
import { aJob, aJobView, at, NOON } from "../builders/objects.ts";

const KEY = "team/report";
const { name } = aJob().metadata;
const deletionTimestamp = at(NOON);
const version = (resourceVersion: string, more: Partial<Job["metadata"]> = {}): Job =>
  aJob({ resourceVersion, ...more });

function aStore(calls: Parameters<typeof aClient>[0] = {}): { store: JobStore; changed: string[] } {
  const changed: string[] = [];
  const store = createJobStore({
    client: aClient(calls),
    jobs: resources.jobs,
    pods: resources.pods,
    onChange: (key) => void changed.push(key),
  });
  return { store, changed };
}

const versions = (store: JobStore): string[] => store.cached(KEY).map((j) => j.resourceVersion);

describe("the watch", () => {
  it("tells of Jobs by the LockedCronJob that owns them", () => {
    const { store, changed } = aStore();
    store.observe(version("1"));
    expect(store.cached(KEY)).toEqual([aJobView()]);
    expect(store.cached("team/other")).toEqual([]);
    expect([...store.keys()]).toEqual([KEY]);
    expect(changed).toEqual([KEY]);
  });

  it("is not believed when it is behind", () => {
    const { store } = aStore();
    store.observe(version("10"));
    store.observe(version("9"));
    expect(versions(store)).toEqual(["10"]);
  });

  it("ends what is gone", () => {
    const { store, changed } = aStore();
    store.observe(version("1"));
    store.observeDeleted(version("2"));
    expect(store.cached(KEY)).toEqual([]);
    expect([...store.keys()]).toEqual([]);
    expect(changed).toEqual([KEY, KEY]);
  });

  it("does not end a Job that was made anew since", () => {
    const { store } = aStore();
    store.observe(version("5", { uid: "job-2" }));
    store.observeDeleted(version("4"));
    expect(versions(store)).toEqual(["5"]);
  });

  it("tells nothing of Jobs that are nobody's", () => {
    const { store, changed } = aStore();
    const nobodys = version("1", { labels: {}, ownerReferences: [] });
    store.observe(nobodys);
    store.observeDeleted(nobodys);
    expect(changed).toEqual([]);
  });

  it("of one that was orphaned goes by its label", () => {
    const { store } = aStore();
    store.observe(version("1", { ownerReferences: [] }));
    expect(versions(store)).toEqual(["1"]);
  });

  it("is not led astray by a label that was changed", () => {
    const { store } = aStore();
    store.observe(version("1"));
    store.observe(version("2", { labels: { [NAME_LABEL]: "another" } }));
    expect(versions(store)).toEqual(["2"]);
    expect(store.cached("team/another")).toEqual([]);
  });
});

describe("a Job without its label", () => {
  it("is read, but not kept: no watch would tell of its end", async () => {
    const { store } = aStore({ get: async () => version("3", { labels: {} }) });
    expect(await store.read("team", name)).toMatchObject({ labelled: false });
    expect(store.cached(KEY)).toEqual([]);
  });

  it("gets it back, if it is still the same Job", async () => {
    const patches: unknown[] = [];
    const { store } = aStore({
      patch: async (_: unknown, key: unknown, patch: unknown) => {
        patches.push([key, patch]);
        return version("4");
      },
    });
    await store.putLabel(aJobView({ labelled: false }), "report");
    const body = { metadata: { uid: "job-1", labels: { [NAME_LABEL]: "report" } } };
    expect(patches).toEqual([
      [
        { namespace: "team", name },
        { type: "strategic", body },
      ],
    ]);
    expect(versions(store)).toEqual(["4"]);
  });

  it.each([notFound, conflict])("that has gone meanwhile is looked for again", async (patch) => {
    const { store } = aStore({ patch, get: notFound });
    await store.putLabel(aJobView({ labelled: false }), "report");
    expect(store.cached(KEY)).toEqual([]);
  });
});

describe("a read", () => {
  it("teaches the cache what it finds", async () => {
    const { store } = aStore({ get: async () => version("3") });
    store.observe(version("1"));
    expect(await store.read("team", name)).toEqual(aJobView({ resourceVersion: "3" }));
    expect(versions(store)).toEqual(["3"]);
  });

  it("teaches it of nothing as well", async () => {
    const { store } = aStore({ get: notFound });
    store.observe(version("1"));
    expect(await store.read("team", name)).toBeUndefined();
    expect(store.cached(KEY)).toEqual([]);
  });

  it("finds a Job that is not ours, but does not keep it", async () => {
    const foreign = version("3", { labels: {}, annotations: {} });
    const { store } = aStore({ get: async () => foreign });
    expect(await store.read("team", name)).toMatchObject({ name, runId: undefined });
    expect(store.cached(KEY)).toEqual([]);
  });

  it("that fails says nothing about the Job", async () => {
    const { store } = aStore({ get: conflict });
    store.observe(version("1"));
    await expect(store.read("team", name)).rejects.toThrow("Conflict");
    expect(versions(store)).toEqual(["1"]);
  });

  it("of all finds those with the label", async () => {
    const asked: unknown[] = [];
    const list = async (_: unknown, options: unknown) => {
      asked.push(options);
      return { items: [version("3")], resourceVersion: "3" };
    };
    const { store } = aStore({ list });
    expect(await store.list(KEY)).toHaveLength(1);
    expect(asked).toMatchObject([
      { namespace: "team", labelSelector: "lockedcron.io/name=report" },
    ]);
    expect(versions(store)).toEqual(["3"]);
  });
});

describe("what was created is known before the watch tells", () => {
  it("by its metadata, which is all that is asked for", async () => {
    const asked: unknown[] = [];
    const { store } = aStore({
      async create(_: unknown, { spec: _spec, status: _status, ...answer }: Job, how: unknown) {
        asked.push(how);
        return answer;
      },
    });
    await store.create(aJob());
    expect(store.cached(KEY)).toEqual([aJobView()]);
    expect(asked).toMatchObject([{ metadataOnly: true, priority: "high" }]);
  });

  it("and is not taken back by it", async () => {
    const { store } = aStore({ create: async () => version("7") });
    await store.create(aJob());
    store.observe(version("6"));
    expect(versions(store)).toEqual(["7"]);
  });
});

describe("an answer that the watch has overtaken with the Job's end does not bring it back", () => {
  type Call = (store: JobStore, job: JobView) => Promise<unknown>;
  it.each<[what: string, verb: string, call: Call]>([
    ["of a read", "get", (store) => store.read("team", name)],
    ["of a create", "create", (store) => store.create(aJob())],
    ["of a patch", "patch", (store, job) => store.dropFinalizer(job)],
  ])("%s", async (_, verb, call) => {
    const { store } = aStore({
      async [verb]() {
        store.observeDeleted(version("2"));
        return version("1");
      },
    });
    store.observe(version("1"));
    await call(store, aJobView());
    expect(store.cached(KEY)).toEqual([]);
  });

  it("but the watch itself does, when the Job has its label again", () => {
    const { store } = aStore();
    store.observe(version("1"));
    store.observeDeleted(version("2"));
    store.observe(version("3"));
    expect(versions(store)).toEqual(["3"]);
  });
});

describe("dropping the launch finalizer", () => {
  it("takes ours off and no other, of this very Job and no namesake", async () => {
    const patches: unknown[] = [];
    const patch = async (...args: unknown[]) => {
      patches.push(args.slice(1, 3));
      return version("2", { finalizers: [] });
    };
    const { store } = aStore({ patch });
    await store.dropFinalizer(aJobView());
    expect(patches).toEqual([
      [
        { namespace: "team", name },
        {
          type: "strategic",
          body: {
            metadata: {
              uid: "job-1",
              "$deleteFromPrimitiveList/finalizers": [LAUNCH_FINALIZER],
            },
          },
        },
      ],
    ]);
    expect(store.cached(KEY)).toMatchObject([{ hasLaunchFinalizer: false }]);
  });

  it("of a Job that goes with it leaves none in the cache", async () => {
    const { store } = aStore({
      patch: async () => version("2", { deletionTimestamp, finalizers: [] }),
    });
    store.observe(version("1", { deletionTimestamp }));
    await store.dropFinalizer(aJobView());
    expect(store.cached(KEY)).toEqual([]);
  });

  it("of a Job that other finalizers keep leaves it there", async () => {
    const left = version("2", { deletionTimestamp, finalizers: ["example.com/x"] });
    const { store } = aStore({ patch: async () => left });
    await store.dropFinalizer(aJobView());
    expect(versions(store)).toEqual(["2"]);
  });

  it.each([
    ["gone", notFound],
    ["made anew by somebody else", conflict],
  ])("of a Job that is %s is done: the cache learns what is there", async (_, patch) => {
    const { store } = aStore({ patch, get: notFound });
    store.observe(version("1"));
    await store.dropFinalizer(aJobView());
    expect(store.cached(KEY)).toEqual([]);
  });
});

describe("deleting", () => {
  it("is of this very Job, in the background, and counts from then on", async () => {
    const deletions: unknown[] = [];
    const { store } = aStore({ delete: async (...args: unknown[]) => void deletions.push(args) });
    store.observe(version("1"));
    await store.delete(aJobView());
    expect(deletions).toEqual([
      [
        resources.jobs,
        { namespace: "team", name },
        { preconditions: { uid: "job-1" }, propagationPolicy: "Background" },
      ],
    ]);
    expect(store.cached(KEY)).toMatchObject([{ deleting: true }]);
  });

  it("of a Job that is gone is done", async () => {
    const { store } = aStore({ delete: notFound, get: notFound });
    store.observe(version("1"));
    await store.delete(aJobView());
    expect(store.cached(KEY)).toEqual([]);
  });
});

it.each([
  ["a pod that is not terminal lives", [{}], true],
  ["without one none does", [], false],
])("%s", async (_, items, want) => {
  const asked: unknown[] = [];
  const list = async (type: unknown, options: unknown) => {
    asked.push(type, options);
    return { items, resourceVersion: "1" };
  };
  const { store } = aStore({ list });
  expect(await store.hasLivePods("team", "job-1")).toBe(want);
  expect(asked[0]).toBe(resources.pods);
  expect(asked[1]).toMatchObject({
    namespace: "team",
    labelSelector: "batch.kubernetes.io/controller-uid=job-1",
    fieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
  });
});
