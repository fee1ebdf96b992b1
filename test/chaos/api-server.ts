/**
 * The API server is restarted, killed or hangs in the middle of a launch; watches expire. Its audit log, which outlives it,
 * says how many Jobs were created.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { namespaces } from "../../src/kube/index.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { installCrd } from "../crd/fixture.ts";
import { nameFor, openWorld, type Lab, type World } from "./world.ts";

let folder: string;
let cluster: ControlPlaneCluster;
let world: World;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lockedcron-audit-"));
  const policy = {
    apiVersion: "audit.k8s.io/v1",
    kind: "Policy",
    omitStages: ["RequestReceived"],
    rules: [
      {
        level: "Metadata",
        verbs: ["create"],
        resources: [{ group: "batch", resources: ["jobs"] }],
      },
      { level: "None" },
    ],
  };
  writeFileSync(join(folder, "policy.json"), JSON.stringify(policy));
  cluster = await startCluster({
    mode: "control-plane",
    flags: {
      apiServer: {
        "audit-policy-file": join(folder, "policy.json"),
        "audit-log-path": join(folder, "log"),
        "audit-log-mode": "blocking",
      },
    },
  });
  await installCrd(cluster);
  world = await openWorld(cluster);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Names of the Jobs that were created in the namespace, as often as they were. */
function audited(lab: Lab): string[] {
  const posts = readFileSync(join(folder, "log"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map(
      (line) =>
        JSON.parse(line) as {
          requestURI: string;
          objectRef: { namespace: string; name: string };
          responseStatus: { code: number };
        },
    )
    // A dry run of the template creates nothing.
    .filter((e) => !e.requestURI.includes("dryRun=") && e.objectRef.namespace === lab.namespace);
  const named = (code: number): string[] =>
    posts.filter((e) => e.responseStatus.code === code).map((e) => e.objectRef.name);
  const created = named(201);
  // "Timeout: context canceled": whoever asked had gone before the answer, which says nothing of what became of it.
  const unanswered = named(504).filter((name) => !created.includes(name));
  return [...created, ...createdIn(lab).filter((name) => unanswered.includes(name))].toSorted();
}

/** Nothing is deleted in these tests, so that what was created can be counted at the end. */
const keep = { successfulJobsHistoryLimit: 1000 };

/** As many as the audit log knows, at the end. */
function createdIn(lab: Lab): string[] {
  return [...lab.seen.names()]
    .flatMap((name) => lab.seen.jobs(name).map((job) => job.name))
    .toSorted();
}

async function more(lab: Lab, count: number): Promise<void> {
  await Promise.all([...lab.seen.names()].map((name) => lab.more(name, count)));
}

const HOW = {
  stopped: { down: () => cluster.apiServer.stop(), up: () => cluster.apiServer.start() },
  killed: { down: () => cluster.apiServer.kill(), up: () => cluster.apiServer.start() },
};

describe.concurrent("with a control plane to break", () => {
  describe("the API server is", { concurrent: false }, () => {
    it.each(["stopped", "killed"] as const)(
      "%s between a claim and its POST, and started again",
      async (how) => {
        await using lab = await world.lab();
        const names = ["one", "two"].map((prefix) =>
          nameFor(lab.namespace, prefix, ["victim", "other"]),
        );
        const steps = [
          { after: "claimed", key: lab.key(names[0]!), do: "hold" },
          { after: "created", key: lab.key(names[1]!), do: "hold" },
        ] as const;
        const [victim, other] = await Promise.all([
          // Stopping the server takes seconds, in which no Lease is renewed; with one that has run out it would not even try to send.
          lab.replica("victim", {
            faults: { steps: [...steps] },
            flags: ["--membership-lease-seconds=30"],
          }),
          lab.replica("other"),
        ]);
        await Promise.all(names.map((name) => lab.create(name, keep)));
        for (const { after } of steps) {
          await victim.line(
            `holds at ${after}`,
            (l) => l.event === "Fault" && l["after"] === after,
          );
        }
        await HOW[how].down();
        victim.signal("SIGUSR2");
        await victim.line("could not send it", ({ outcome }) => outcome === "not sent");
        await HOW[how].up();
        await more(lab, 2);
        expect(await lab.violationsAtEnd()).toEqual([]);
        expect(audited(lab)).toEqual(createdIn(lab));
        // What the watches missed meanwhile was listed anew.
        expect(lab.seen.gaps().length).toBeGreaterThan(0);
        const metrics = (await Promise.all([victim.metrics(), other.metrics()])).join("\n");
        expect(metrics).toMatch(/watch_restarts_total\{[^}]*reason="Expired"\} [1-9]/);
        expect([await victim.stop(), await other.stop()]).toEqual([0, 0]);
      },
    );

    it("hanging when the POST is sent, and awakes after it was given up", async () => {
      await using lab = await world.lab();
      const name = nameFor(lab.namespace, "job", ["victim", "other"]);
      const [victim, other] = await Promise.all([
        // A process trusts its Lease for a quarter of that: longer than between two renewals, or it might not even try to send.
        lab.replica("victim", {
          faults: { steps: [{ after: "claimed", do: "hold" }], requestBoundMs: 12_000 },
          flags: ["--kube-timeout-ms=2000"],
        }),
        lab.replica("other"),
      ]);
      await lab.create(name, keep);
      await victim.line("holds", ({ event }) => event === "Fault");
      cluster.apiServer.pause();
      victim.signal("SIGUSR2");
      await victim.line("gives it up", ({ outcome }) => outcome === "the answer was lost");
      cluster.apiServer.resume();
      await cluster.apiServer.ready();
      await more(lab, 2);
      expect(await lab.violationsAtEnd()).toEqual([]);
      expect(audited(lab)).toEqual(createdIn(lab));
      expect([await victim.stop(), await other.stop()]).toEqual([0, 0]);
    });
  });

  describe("a namespace that is being deleted", { concurrent: false }, () => {
    it("takes no Job any more: the tick is refused, and the namespace goes", async () => {
      await using lab = await world.lab();
      await using system = await world.lab();
      const replica = await system.replica("a", { watch: [lab.namespace, system.namespace] });
      await lab.create("job", { schedule: "@every 3s", ...keep });
      await lab.seen.until("a ledger", () => lab.seen.ledger("job"));
      // Its controller stands still, so that everything in it is still there.
      cluster.controllerManager.pause();
      await world.client.delete(namespaces, { name: lab.namespace });
      const { message } = await lab.seen.until(
        "the tick is refused",
        () => lab.seen.ledger("job")?.runs.find(({ refusal }) => refusal !== undefined)?.refusal,
      );
      expect(message).toContain("is being terminated");
      cluster.controllerManager.resume();
      await until("it goes", 90_000, async () => {
        const { items } = await world.client.list(namespaces);
        return items.every(({ metadata }) => metadata.name !== lab.namespace);
      });
      expect(audited(lab)).toEqual([]);
      await system.create("next");
      await system.seen.created("next", 1);
      expect(await replica.stop()).toBe(0);
    });
  });
});
