import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { KubeObject } from "../../src/kube/resources.ts";
import { createStore, labelIndex, ownerUidIndex } from "../../src/kube/store.ts";

type Version = Partial<KubeObject["metadata"]>;

function object(name: string, version: Version = {}): KubeObject {
  return {
    metadata: { name, namespace: "ns", uid: `uid-${name}`, resourceVersion: "1", ...version },
  };
}

function setUp() {
  const errors: unknown[] = [];
  const { store, writer } = createStore<KubeObject>({
    indexes: { owner: ownerUidIndex, app: labelIndex("app") },
    onHandlerError: (error) => void errors.push(error),
  });
  const told: string[] = [];
  const show = ({ metadata }: KubeObject): string => `${metadata.name}@${metadata.resourceVersion}`;
  store.subscribe({
    added: (added) => void told.push(`+${show(added)}`),
    updated: (updated, old) => void told.push(`${show(old)}>${show(updated)}`),
    deleted: (deleted) => void told.push(`-${show(deleted)}`),
  });
  return { store, writer, told, errors };
}

describe("store", () => {
  it("tells what was added, changed and deleted, with the state before", () => {
    const { store, writer, told } = setUp();
    writer.put(object("a"));
    writer.put(object("a", { resourceVersion: "2" }));
    writer.remove(object("a", { resourceVersion: "3" }));
    expect(told).toEqual(["+a@1", "a@1>a@2", "-a@3"]);
    expect(store.size).toBe(0);
  });

  it("tells nothing of what did not change, or was never known", () => {
    const { writer, told } = setUp();
    writer.put(object("a"));
    writer.put(object("a"));
    writer.remove(object("b"));
    expect(told).toEqual(["+a@1"]);
  });

  it("finds out what happened between two lists, deletions included", () => {
    const { store, writer, told } = setUp();
    writer.replace([object("a"), object("b"), object("c")], 10);
    told.length = 0;
    writer.replace([object("b"), object("c", { resourceVersion: "2" }), object("d")], 20);
    expect(told).toEqual(["-a@1", "c@1>c@2", "+d@1"]);
    expect([...store.keys()].sort()).toEqual(["ns/b", "ns/c", "ns/d"]);
  });

  it("an object deleted and created anew between two looks is two objects", () => {
    const { writer, told } = setUp();
    writer.put(object("a"));
    writer.put(object("a", { uid: "another", resourceVersion: "9" }));
    expect(told).toEqual(["+a@1", "-a@1", "+a@9"]);
  });

  it("replays what is there to a late subscriber, and stops when told to", () => {
    const { store, writer } = setUp();
    writer.put(object("a"));
    const seen: string[] = [];
    const stop = store.subscribe({ added: ({ metadata }) => void seen.push(metadata.name ?? "") });
    writer.put(object("b"));
    stop();
    writer.put(object("c"));
    expect(seen).toEqual(["a", "b"]);
  });

  it("a handler that throws is reported, and the next is called", () => {
    const { store, writer, told, errors } = setUp();
    store.subscribe({
      added() {
        throw new Error("broken");
      },
    });
    const last: string[] = [];
    store.subscribe({ added: ({ metadata }) => void last.push(metadata.name ?? "") });
    writer.put(object("a"));
    expect(told).toEqual(["+a@1"]);
    expect(last).toEqual(["a"]);
    expect(errors).toEqual([new Error("broken")]);
  });

  it("is synced after the first list, and fresh as of the latest news", () => {
    const { store, writer } = setUp();
    expect(store.hasSynced()).toBe(false);
    expect(store.freshAsOf()).toBe(-Infinity);
    writer.replace([], 100);
    expect(store.hasSynced()).toBe(true);
    expect(store.freshAsOf()).toBe(100);
    writer.fresh(150);
    // A list that was sent before the last event says nothing newer.
    writer.replace([], 120);
    expect(store.freshAsOf()).toBe(150);
  });

  it("refuses an index it does not have", () => {
    expect(() => setUp().store.by("nope", "x")).toThrow('there is no index "nope"');
  });

  it("keys an object without namespace by its name", () => {
    const { store, writer } = setUp();
    writer.put({ metadata: { name: "node-1", uid: "u", resourceVersion: "1" } });
    expect(store.get("node-1")).toBeDefined();
  });

  it("indexes hold exactly the objects that have the value, whatever happened before", () => {
    const change = fc.record({
      name: fc.constantFrom("a", "b", "c", "d"),
      uid: fc.constantFrom("1", "2"),
      app: fc.option(fc.constantFrom("x", "y"), { nil: undefined }),
      owners: fc.subarray(["o1", "o2", "o3"]),
      how: fc.constantFrom("put", "remove", "replace"),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 50 }), (changes) => {
        const { store, writer } = setUp();
        let version = 0;
        for (const { name, uid, app, owners, how } of changes) {
          const changed = object(name, {
            uid,
            resourceVersion: String(++version),
            labels: app === undefined ? {} : { app },
            ownerReferences: owners.map((owner) => ({
              apiVersion: "v1",
              kind: "X",
              name: owner,
              uid: owner,
            })),
          });
          if (how === "put") writer.put(changed);
          else if (how === "remove") writer.remove(changed);
          else
            writer.replace(
              [
                changed,
                ...store
                  .list()
                  .slice(0, 2)
                  .filter((o) => o.metadata.name !== name),
              ],
              0,
            );
          const all = store.list();
          for (const value of ["x", "y"]) {
            const want = all.filter(({ metadata }) => metadata.labels?.["app"] === value);
            expect(new Set(store.by("app", value))).toEqual(new Set(want));
          }
          for (const value of ["o1", "o2", "o3"]) {
            const want = all.filter(({ metadata }) =>
              metadata.ownerReferences?.some((owner) => owner.uid === value),
            );
            expect(new Set(store.by("owner", value))).toEqual(new Set(want));
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
