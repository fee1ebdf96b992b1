import { describe, expect, it } from "vitest";
import { PROCESS_ANNOTATION } from "../../src/api/names.ts";
import type { KubeObject, Lease } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import {
  createMembership,
  memberLeaseName,
  type Membership,
} from "../../src/controller/membership.ts";
import { rankOf } from "../../src/domain/election.ts";
import { aClient, conflict, notFound, rejected } from "../builders/client.ts";
import { manualTime, settle, type ManualTime } from "./manual-time.ts";

const LEASE_SECONDS = 15;
const BOUND_MS = 1_000;

interface Rig {
  members: Membership;
  time: ManualTime;
  /** Leases as the API server has them. */
  leases: Map<string, Lease>;
  /** What went to the API server, in order. */
  calls: string[];
  trouble: (string | undefined)[];
  superseded: string[];
  changes: () => number;
}

/** A replica `me` before a little API server that keeps Leases by resourceVersion. */
function aMember(
  o: { process?: string; pods?: Record<string, KubeObject>; broken?: () => boolean } = {},
): Rig {
  const { process = "me/1", pods = {}, broken = () => false } = o;
  const time = manualTime();
  const leases = new Map<string, Lease>();
  const calls: string[] = [];
  const trouble: (string | undefined)[] = [];
  const superseded: string[] = [];
  let changes = 0;
  let version = 0;
  const store = (lease: Lease): Lease => {
    const resourceVersion = String(++version);
    const stored = { ...lease, metadata: { ...lease.metadata, uid: "u", resourceVersion } };
    leases.set(lease.metadata.name, stored);
    return stored;
  };
  const call = <T>(verb: string, answer: () => T | Promise<never>) => {
    calls.push(verb);
    return broken() ? rejected(0, "ConnectionRefused") : Promise.resolve(answer());
  };
  const client = aClient({
    get: (type: { plural: string }, { name }: { name: string }) =>
      type.plural === "pods"
        ? call(`get pod ${name}`, () => pods[name] ?? notFound())
        : call("get", () => leases.get(name) ?? notFound()),
    create: (_: unknown, lease: Lease) => call("create", () => store(lease)),
    update: (_: unknown, lease: Lease) =>
      call("update", () =>
        leases.get(lease.metadata.name)?.metadata.resourceVersion === lease.metadata.resourceVersion
          ? store(lease)
          : conflict(),
      ),
    delete: (_: unknown, { name }: { name: string }) => call("delete", () => leases.delete(name)),
  });
  const members = createMembership({
    client,
    leases: resources.leases,
    pods: resources.pods,
    clock: time.clock,
    timers: time.timers,
    namespace: "system",
    replica: "me",
    podName: "pod-me",
    process,
    leaseSeconds: LEASE_SECONDS,
    requestBoundMs: BOUND_MS,
    onHealth: (said) => void trouble.push(said),
    onChange: () => void changes++,
    onSuperseded: (by) => void superseded.push(by),
  });
  return { members, time, leases, calls, trouble, superseded, changes: () => changes };
}

/** The Lease of another replica's process, renewed so many times. */
function leaseOf(process: string, renewal = 0, podName?: string): Lease {
  const replica = process.slice(0, process.indexOf("/"));
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: memberLeaseName(replica),
      namespace: "system",
      uid: `lease-${replica}`,
      resourceVersion: "1",
      creationTimestamp: "2026-01-01T00:00:00Z",
      annotations: {
        [PROCESS_ANNOTATION]: process,
        ...(podName === undefined ? {} : { "lockedcron.io/pod": podName }),
      },
    },
    spec: { leaseDurationSeconds: LEASE_SECONDS, renewTime: `renewal ${renewal}` },
  };
}

describe("its own Lease", () => {
  it("is made, and renewed each third of its duration", async () => {
    const { members, time, leases, calls, trouble } = aMember();
    await members.start();
    expect(calls).toEqual(["get", "create"]);
    await time.pass(10_000);
    expect(calls).toEqual(["get", "create", "update", "update"]);
    const lease = leases.get(memberLeaseName("me"));
    expect(lease).toMatchObject({
      metadata: {
        namespace: "system",
        labels: { "lockedcron.io/component": "replica" },
        annotations: { "lockedcron.io/process": "me/1", "lockedcron.io/pod": "pod-me" },
      },
      spec: {
        holderIdentity: "me",
        leaseDurationSeconds: LEASE_SECONDS,
        renewTime: "2026-01-01T00:00:10.000000Z",
        acquireTime: "2026-01-01T00:00:00.000000Z",
      },
    });
    expect(trouble).toEqual([undefined, undefined, undefined]);
  });

  it("is taken over from an older process of this replica", async () => {
    const { members, leases, calls } = aMember({ process: "me/2" });
    leases.set(memberLeaseName("me"), leaseOf("me/1"));
    await members.start();
    expect(calls).toEqual(["get", "update"]);
    const { annotations } = leases.get(memberLeaseName("me"))?.metadata ?? {};
    expect(annotations?.[PROCESS_ANNOTATION]).toBe("me/2");
  });

  it("that cannot be renewed is said so, and tried again", async () => {
    let broken = true;
    const { members, time, trouble } = aMember({ broken: () => broken });
    await members.start();
    broken = false;
    await time.pass(5_000);
    expect(trouble).toEqual([expect.stringContaining("ConnectionRefused"), undefined]);
  });

  it("written by somebody else meanwhile is read again", async () => {
    const { members, time, leases, calls, trouble } = aMember();
    await members.start();
    const lease = leases.get(memberLeaseName("me")) as Lease;
    const metadata = { ...lease.metadata, resourceVersion: "99", labels: { by: "hand" } };
    leases.set(memberLeaseName("me"), { ...lease, metadata });
    await time.pass(10_000);
    expect(calls.slice(2)).toEqual(["update", "get", "update"]);
    expect(trouble).toEqual([undefined, expect.stringContaining("Conflict"), undefined]);
    expect(leases.get(memberLeaseName("me"))?.metadata.labels).toMatchObject({ by: "hand" });
  });

  it.each(["by the watch", "when it looks"])(
    "taken by a newer process of the same name is not taken back: it is told %s",
    async (how) => {
      const { members, time, leases, superseded } = aMember();
      await members.start();
      const newer = leaseOf("me/2");
      leases.set(memberLeaseName("me"), {
        ...newer,
        metadata: { ...newer.metadata, resourceVersion: "99" },
      });
      if (how === "by the watch") members.observe(newer);
      else await time.pass(10_000);
      expect(superseded).toEqual(["me/2"]);
      const { annotations } = leases.get(memberLeaseName("me"))?.metadata ?? {};
      expect(annotations?.[PROCESS_ANNOTATION]).toBe("me/2");
    },
  );

  it("is given up when it resigns, and renewed no more", async () => {
    const { members, time, leases, calls } = aMember();
    await members.start();
    await members.resign();
    await time.pass(60_000);
    expect(leases.size).toBe(0);
    expect(calls).toEqual(["get", "create", "delete"]);
    expect(time.pendingTimers()).toBe(0);
  });

  it("of a newer process is not given up in its place", async () => {
    const { members, leases, calls } = aMember();
    leases.set(memberLeaseName("me"), leaseOf("me/2"));
    await members.resign();
    expect(calls).toEqual(["get"]);
  });

  it("stays when it only stops: by it alone can its death be proven", async () => {
    const { members, time, leases } = aMember();
    await members.start();
    await members[Symbol.asyncDispose]();
    expect(leases.size).toBe(1);
    expect(time.pendingTimers()).toBe(0);
  });
});

describe("another replica", () => {
  it("lives as long as its Lease is seen to change, by our clock", async () => {
    const { members, time } = aMember();
    members.observe(leaseOf("other/1"));
    expect(members.live()).toEqual(["me", "other"]);
    await time.pass(14_000);
    members.observe(leaseOf("other/1", 1));
    await time.pass(14_000);
    expect(members.stateOf("other/1")).toBe("alive");
    await time.pass(1_000);
    expect(members.stateOf("other/1")).toBe("silent");
    expect(members.live()).toEqual(["me"]);
  });

  it("does not live longer because its Lease is told of again", async () => {
    const { members, time } = aMember();
    members.observe(leaseOf("other/1"));
    await time.pass(14_000);
    members.observe(leaseOf("other/1"));
    await time.pass(1_000);
    expect(members.stateOf("other/1")).toBe("silent");
  });

  it("is silent when nothing is known of it", () => {
    expect(aMember().members.stateOf("never seen/1")).toBe("silent");
  });

  it("that is only silent is never proven dead by that: it may be paused", async () => {
    const { members, time } = aMember();
    members.observe(leaseOf("other/1"));
    await time.pass(24 * 3_600_000);
    expect(members.stateOf("other/1")).toBe("silent");
  });

  it("whose Lease is gone is silent", () => {
    const { members } = aMember();
    members.observe(leaseOf("other/1"));
    members.observeDeleted(leaseOf("other/1"));
    expect(members.stateOf("other/1")).toBe("silent");
    expect(members.live()).toEqual(["me"]);
  });

  it("says who it is by its annotation: a Lease without one is nobody's", () => {
    const { members, changes } = aMember();
    const lease = leaseOf("other/1");
    members.observe({ ...lease, metadata: { ...lease.metadata, annotations: {} } });
    expect(members.live()).toEqual(["me"]);
    expect(changes()).toBe(0);
  });
});

describe("a process is proven dead", () => {
  it("by a newer one of its replica that has taken its Lease", async () => {
    const { members, time, changes } = aMember();
    members.observe(leaseOf("other/1"));
    members.observe(leaseOf("other/2"));
    expect(members.stateOf("other/1")).toBe("dead");
    expect(members.stateOf("other/2")).toBe("alive");
    expect(changes()).toBeGreaterThan(1);
    await time.pass(BOUND_MS);
    expect(members.stateOf("other/1")).toBe("dead");
    await time.pass(1);
    expect(members.stateOf("other/1")).toBe("past");
  });

  it("also when only the newer one was ever seen", () => {
    const { members } = aMember();
    members.observe(leaseOf("other/2"));
    expect(members.stateOf("other/1")).toBe("dead");
  });

  it("when it is an older one of our own replica: that has ended before we began", () => {
    const { members } = aMember({ process: "me/2" });
    expect(members.stateOf("me/1")).toBe("dead");
  });

  const pod = (uid: string, phase = "Running"): KubeObject =>
    ({ metadata: { uid }, status: { phase } }) as unknown as KubeObject;
  it.each<[what: string, pods: Record<string, KubeObject>, want: string]>([
    ["its pod is gone", {}, "dead"],
    ["another pod has the name of its own", { "pod-other": pod("another uid") }, "dead"],
    ["its pod has failed", { "pod-other": pod("other", "Failed") }, "dead"],
    ["its pod has run to its end", { "pod-other": pod("other", "Succeeded") }, "dead"],
    ["not when its pod runs", { "pod-other": pod("other") }, "silent"],
    ["not when nobody knows where its pod is", { "pod-other": pod("other", "Unknown") }, "silent"],
  ])("%s", async (_, pods, want) => {
    const { members, time } = aMember({ pods });
    members.observe(leaseOf("other/1", 0, "pod-other"));
    await time.pass(15_000);
    members.stateOf("other/1");
    await settle();
    expect(members.stateOf("other/1")).toBe(want);
  });

  it("not when the API server cannot be asked for its pod", async () => {
    const { members, time } = aMember({ broken: () => true });
    members.observe(leaseOf("other/1", 0, "pod-other"));
    await time.pass(15_000);
    members.stateOf("other/1");
    await settle();
    expect(members.stateOf("other/1")).toBe("silent");
  });

  it("and its pod is not asked for each time that somebody wants to know", async () => {
    const { members, time, calls } = aMember({ pods: { "pod-other": pod("other") } });
    members.observe(leaseOf("other/1", 0, "pod-other"));
    await time.pass(15_000);
    for (let i = 0; i < 20; i++) {
      members.stateOf("other/1");
      await time.pass(1_000);
    }
    expect(calls).toEqual(["get pod pod-other", "get pod pod-other"]);
  });
});

describe("its rank for a key", () => {
  const keys = Array.from({ length: 20 }, (_, i) => `team/report-${i}`);

  it("is that among the live", async () => {
    const { members } = aMember();
    await members.start();
    members.observe(leaseOf("other/1"));
    const ranks = keys.map((key) => members.rank(key));
    expect(ranks).toEqual(keys.map((key) => rankOf("me", ["me", "other"], key)));
  });

  it("is the last while it cannot renew its Lease: what it wins it could not claim", async () => {
    const { members } = aMember({ broken: () => true });
    await members.start();
    members.observe(leaseOf("other/1"));
    expect(new Set(keys.map((key) => members.rank(key)))).toEqual(new Set([2]));
  });
});
