import { describe, expect, it } from "vitest";
import type { KubeObject, Lease } from "../../src/api/types.ts";
import { memberLeaseName, processOf } from "../../src/controller/member-lease.ts";
import { rankOf } from "../../src/domain/election.ts";
import { settle } from "./manual-time.ts";
import { aMember, BOUND_MS, leaseOf, versionOf } from "./member-rig.ts";

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

  it("also when only the newer one was ever seen: its Lease as it is now tells", async () => {
    const { members, leases } = aMember();
    leases.set(memberLeaseName("other"), leaseOf("other/2"));
    members.observe(leaseOf("other/2"));
    expect(members.stateOf("other/1")).toBe("silent");
    await settle();
    expect(members.stateOf("other/1")).toBe("dead");
  });

  it("and when nobody may be asked, that is said", async () => {
    const { members, trouble } = aMember({ broken: () => true });
    expect(members.stateOf("other/1")).toBe("silent");
    await settle();
    expect(trouble).toEqual(["whether other/1 is dead cannot be found out"]);
  });

  it("not by an older one in a cache that is behind", async () => {
    const { members, leases } = aMember();
    leases.set(memberLeaseName("other"), leaseOf("other/2"));
    members.observe(leaseOf("other/1"));
    expect(members.stateOf("other/2")).toBe("silent");
    await settle();
    expect(members.stateOf("other/2")).toBe("alive");
    expect(members.stateOf("other/1")).toBe("dead");
  });

  it("not by news of an older one that comes late, after a watch was taken up again", async () => {
    const { members, time, leases } = aMember();
    members.observe(versionOf(leaseOf("other/1"), "7"));
    leases.set(memberLeaseName("other"), versionOf(leaseOf("other/2"), "9"));
    await time.pass(15_000);
    // Silent for us, so its Lease is read as it is now, past what the watch has still to tell.
    expect(members.stateOf("other/1")).toBe("silent");
    await settle();
    members.observe(versionOf(leaseOf("other/1", 1), "8"));
    members.observe(versionOf(leaseOf("other/2"), "9"));
    expect(members.stateOf("other/1")).toBe("dead");
    expect(members.stateOf("other/2")).toBe("alive");
  });

  it("when it is an older one of our own replica, once its Lease is ours", async () => {
    const { members, leases } = aMember({ process: "me/2" });
    leases.set(memberLeaseName("me"), leaseOf("me/1"));
    expect(members.stateOf("me/1")).toBe("silent");
    await members.start();
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
  ])("when it is silent and its Lease was taken from it, as %s", async (_, pods, want) => {
    const { members, time, leases } = aMember({ pods });
    const lease = leaseOf("other/1", 0, "pod-other");
    leases.set(memberLeaseName("other"), lease);
    members.observe(lease);
    await time.pass(15_000);
    members.stateOf("other/1");
    await settle();
    expect(members.stateOf("other/1")).toBe(want);
    const now = leases.get(memberLeaseName("other")) as Lease;
    expect(processOf(now)).toBe(want === "dead" ? "other/fenced-by-1" : "other/1");
    expect(members.live()).toEqual(["me"]);
  });

  it("not when it renews while its Lease is being taken", async () => {
    const { members, time, leases } = aMember();
    members.observe(leaseOf("other/1", 0, "pod-other"));
    const renewed = leaseOf("other/1", 1, "pod-other");
    leases.set(memberLeaseName("other"), renewed);
    await time.pass(15_000);
    members.stateOf("other/1");
    await settle();
    expect(members.stateOf("other/1")).toBe("alive");
    expect(leases.get(memberLeaseName("other"))).toBe(renewed);
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
    const { members, time, leases, calls } = aMember({ pods: { "pod-other": pod("other") } });
    leases.set(memberLeaseName("other"), leaseOf("other/1", 0, "pod-other"));
    members.observe(leaseOf("other/1", 0, "pod-other"));
    await time.pass(15_000);
    for (let i = 0; i < 20; i++) {
      members.stateOf("other/1");
      await time.pass(1_000);
    }
    expect(calls).toEqual(["get", "get pod pod-other", "get", "get pod pod-other"]);
  });

  it("when it was silent for long, even if nothing is known of its pod", async () => {
    const { members, time, leases } = aMember();
    leases.set(memberLeaseName("other"), leaseOf("other/1"));
    members.observe(leaseOf("other/1"));
    await time.pass(899_999);
    members.stateOf("other/1");
    await settle();
    expect(members.stateOf("other/1")).toBe("silent");
    await time.pass(10_000);
    members.stateOf("other/1");
    await settle();
    expect(members.stateOf("other/1")).toBe("dead");
  });
});

describe("a Lease that was deleted by hand", () => {
  const pod = { metadata: { uid: "other" }, status: { phase: "Running" } } as unknown as KubeObject;

  it("is made anew at once by the process that it belongs to", async () => {
    const { members, leases, calls } = aMember();
    await members.start();
    const lease = leases.get(memberLeaseName("me")) as Lease;
    leases.clear();
    members.observeDeleted(lease);
    await settle();
    expect(processOf(leases.get(memberLeaseName("me")) as Lease)).toBe("me/1");
    expect(calls).toEqual(["get", "create", "get", "create"]);
  });

  it("is forgotten by nobody: the pod that it named is still looked for", async () => {
    const pods: Record<string, KubeObject> = { "pod-other": pod };
    const { members, time, leases } = aMember({ pods });
    members.observe(leaseOf("other/1", 0, "pod-other"));
    members.observeDeleted(leaseOf("other/1", 0, "pod-other"));
    members.stateOf("other/1");
    await settle();
    expect(members.stateOf("other/1")).toBe("silent");
    delete pods["pod-other"];
    await time.pass(10_000);
    members.stateOf("other/1");
    await settle();
    expect(members.stateOf("other/1")).toBe("dead");
    // A fence stands where its Lease was: should it go on, it finds that.
    expect(processOf(leases.get(memberLeaseName("other")) as Lease)).toBe("other/fenced-by-1");
  });

  it("does not come back when its process was silent for so long that it may have been fenced", async () => {
    const { members, time, leases, superseded } = aMember();
    await members.start();
    const lease = leases.get(memberLeaseName("me")) as Lease;
    time.jump(1_800_001);
    leases.clear();
    members.observeDeleted(lease);
    await settle();
    expect(leases.size).toBe(0);
    expect(superseded).toEqual(["nobody (it was collected)"]);
    expect(await members.confirm()).toBe(false);
  });
});

describe("the Lease of a replica that is gone for good", () => {
  const HOUR = 3_600_000;

  it.each<[what: string, owes: boolean, afterMs: number, kept: boolean]>([
    ["is collected after an hour", false, HOUR + 10_000, false],
    ["not before", false, HOUR - 10_000, true],
    ["not while an attempt of it is open", true, HOUR + 10_000, true],
  ])("%s", async (_, owes, afterMs, kept) => {
    const { members, time, leases } = aMember({ owes: () => owes });
    await members.start();
    leases.set(memberLeaseName("other"), leaseOf("other/1"));
    members.observe(leaseOf("other/1"));
    await time.pass(afterMs);
    expect(leases.has(memberLeaseName("other"))).toBe(kept);
    expect(leases.has(memberLeaseName("me"))).toBe(true);
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
