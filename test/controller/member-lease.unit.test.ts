import { describe, expect, it } from "vitest";
import { PROCESS_ANNOTATION } from "../../src/api/names.ts";
import type { Lease } from "../../src/api/types.ts";
import { memberLeaseName } from "../../src/controller/member-lease.ts";
import { aMember, BOUND_MS, LEASE_SECONDS, leaseOf, versionOf } from "./member-rig.ts";

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

  it("is not lost to the process before it, of which a watch tells late", async () => {
    const { members, leases, superseded } = aMember({ process: "me/2" });
    const older = versionOf(leaseOf("me/1"), "0");
    leases.set(memberLeaseName("me"), older);
    await members.start();
    members.observe(older);
    expect(superseded).toEqual([]);
    expect(await members.confirm()).toBe(true);
  });

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

describe("the licence to send", () => {
  it("lasts a little while after the Lease was renewed, then it is renewed first", async () => {
    const { members, time, calls } = aMember();
    await members.start();
    expect(await members.confirm()).toBe(true);
    await time.pass(BOUND_MS / 4 - 1);
    expect(await members.confirm()).toBe(true);
    expect(calls).toEqual(["get", "create"]);
    await time.pass(1);
    expect(await members.confirm()).toBe(true);
    expect(calls).toEqual(["get", "create", "update"]);
  });

  it("is lost by whoever stood still while his Lease was taken", async () => {
    const { members, time, leases, superseded } = aMember();
    await members.start();
    const other = { ...leaseOf("me/fenced-by-9") };
    other.metadata = { ...other.metadata, resourceVersion: "99" };
    leases.set(memberLeaseName("me"), other);
    time.jump(60_000);
    expect(await members.confirm()).toBe(false);
    expect(superseded).toEqual(["me/fenced-by-9"]);
    expect(leases.get(memberLeaseName("me"))).toBe(other);
  });

  it("is not given while the API server does not answer", async () => {
    let broken = true;
    const { members } = aMember({ broken: () => broken });
    expect(await members.confirm()).toBe(false);
    broken = false;
    expect(await members.confirm()).toBe(true);
  });

  it("is not given for another replica's Lease of the same name", async () => {
    const { members, leases, trouble } = aMember();
    const foreign = leaseOf("stranger/1");
    foreign.metadata = { ...foreign.metadata, name: memberLeaseName("me") };
    leases.set(memberLeaseName("me"), foreign);
    await members.start();
    expect(trouble).toEqual([
      expect.stringContaining("is replica stranger's, not me's: delete it"),
    ]);
    expect(await members.confirm()).toBe(false);
    expect(leases.get(memberLeaseName("me"))).toBe(foreign);
    members.observe(foreign);
    expect(members.live()).toEqual(["me"]);
  });

  it("is renewed once for all who ask at the same time", async () => {
    const { members, calls } = aMember();
    const answers = await Promise.all([members.confirm(), members.confirm(), members.confirm()]);
    expect(answers).toEqual([true, true, true]);
    expect(calls).toEqual(["get", "create"]);
  });
});
