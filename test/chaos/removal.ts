/** Things are deleted while a finalizer is pending: nothing runs twice, and nothing is in the way of the deletion. */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ledgerName } from "../../src/api/names.ts";
import { EventReason, Reason } from "../../src/api/reasons.ts";
import { resources } from "../../src/controller/caches.ts";
import { namespaces } from "../../src/kube/index.ts";
import { until } from "../cluster/proc.ts";
import { run } from "../cluster/run.ts";
import type { Replica } from "../harness/replica.ts";
import type { CreatedJob } from "./ticks.ts";
import {
  FINISHES_AT_ONCE,
  hasLaunchFinalizer,
  NEVER_FINISHES,
  useWorld,
  type Lab,
} from "./world.ts";

const requestBoundMs = 500;
const NODE = fileURLToPath(new URL("../../node_modules/.bin/node", import.meta.url));
const CLI = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

const world = useWorld();

interface Pending {
  name: string;
  /** Its attempt is open, so its Job keeps the finalizer until a successor of the killed replica starts. */
  job: CreatedJob;
  other: Replica;
  successor(): Promise<Replica>;
}

/** A tick that was claimed by a replica which then died, and launched by another one. */
async function pendingFinalizer(
  lab: Lab,
  job: Record<string, unknown> = NEVER_FINISHES,
): Promise<Pending> {
  const name = "job";
  const victim = await lab.replica("victim", {
    faults: { steps: [{ after: "claimed", do: "kill" }] },
  });
  await lab.create(name, { job });
  await victim.exited;
  const other = await lab.replica("other", { faults: { requestBoundMs } });
  const held = await lab.seen.until("another one launches the tick", () =>
    lab.seen.jobs(name).find(({ attempt }) => attempt === 2),
  );
  await lab.seen.until("the ledger knows its Job", () =>
    lab.seen.ledger(name)?.runs.some(({ jobUID }) => jobUID === held.uid),
  );
  const successor = () => lab.replica("victim", { faults: { requestBoundMs } });
  return { name, job: held, other, successor };
}

const isGone = (lab: Lab) => () =>
  world()
    .client.list(namespaces, { fieldSelector: `metadata.name=${lab.namespace}` })
    .then(({ items }) => items.length === 0);

/** What the namespace controller says it waits for. */
async function waitsForFinalizers(lab: Lab): Promise<void> {
  await until("the namespace waits for our finalizers", 90_000, async () => {
    const namespace = (await world().client.get(namespaces, { name: lab.namespace })) as {
      status?: { conditions?: { type: string; status: string; message: string }[] };
    };
    return namespace.status?.conditions?.some(
      ({ type, status, message }) =>
        type === "NamespaceFinalizersRemaining" &&
        status === "True" &&
        message.includes("lockedcron.io/launch in 2 resource instances"),
    );
  });
}

describe.concurrent("with a finalizer pending", () => {
  it("a namespace that is deleted goes as soon as no POST can arrive any more", async () => {
    await using lab = await world().lab();
    // The replicas' own Leases are elsewhere, or the namespace would take them along.
    await using held = await world().lab(lab.namespace);
    const { name, successor } = await pendingFinalizer(held);
    await world().client.delete(namespaces, { name: held.namespace });
    await waitsForFinalizers(held);
    expect(held.seen.violations(name)).toEqual([]);
    await successor();
    await until("the namespace goes", 150_000, isGone(held));
    expect(held.seen.violations(name)).toEqual([]);
  });

  it("the operator goes for good: release-finalizers frees what it left behind", async () => {
    await using lab = await world().lab();
    const { job, name, other } = await pendingFinalizer(lab);
    const release = (...argv: string[]): Promise<string> =>
      run(NODE, [
        CLI,
        "release-finalizers",
        `--namespace=${lab.namespace}`,
        `--kubeconfig=${world().cluster.kubeconfigPath}`,
        ...argv,
      ]);
    await expect(release()).rejects.toThrow(
      /nothing was released, for the operator runs: .*other\//,
    );
    expect(await release("--dry-run")).toContain("To be released: 1 Jobs, 1 Leases");
    expect(hasLaunchFinalizer(await lab.job(job.name))).toBe(true);

    await other.kill();
    expect((await release("--force")).split("\n")).toEqual([
      `Job ${lab.namespace}/${job.name}`,
      `Lease ${lab.namespace}/${ledgerName(name)}`,
      "Released: 1 Jobs, 1 Leases",
      "",
    ]);
    await world().client.delete(namespaces, { name: lab.namespace });
    await until("the namespace goes", 150_000, isGone(lab));
  });

  it("a Job that is deleted stays until then, and the next tick runs", async () => {
    await using lab = await world().lab();
    const { name, job, successor } = await pendingFinalizer(lab);
    await world().client.delete(resources.jobs, { namespace: lab.namespace, name: job.name });
    await lab.seen.until(
      "it is being deleted",
      () => job.object.metadata.deletionTimestamp !== undefined,
    );
    await successor();
    await lab.seen.until("it goes", () => job.deletedAt !== undefined);
    await lab.seen.created(name, 2);
    expect(lab.seen.ledger(name)?.decisions).toContainEqual(
      expect.objectContaining({ tick: job.tick, decision: "Finished", reason: Reason.JobGone }),
    );
    expect(lab.seen.violations(name)).toEqual([]);
  });

  it("a LockedCronJob that is deleted and made anew takes over what was pending", async () => {
    await using lab = await world().lab();
    const { name, job, successor } = await pendingFinalizer(lab);
    await lab.remove(name);
    await lab.seen.until("it is gone", () => lab.seen.owner(name) === undefined);
    const again = await lab.create(name, { job: FINISHES_AT_ONCE });
    const [next] = await lab.seen.until("ticks of the new one", () => {
      const jobs = lab.seen.jobs(name).filter(({ owner }) => owner === again.metadata.uid);
      return jobs.length >= 2 && jobs;
    });
    expect(next!.token).toBeGreaterThan(job.token);
    expect(hasLaunchFinalizer(await lab.job(job.name))).toBe(true);
    await successor();
    await lab.seen.until("the old Job goes", () => job.deletedAt !== undefined);
    expect(await lab.violationsAtEnd()).toEqual([]);
  });

  it("a ledger that is deleted by hand stays until then, and is made anew", async () => {
    await using lab = await world().lab();
    // Its Job is gone as soon as it may: what is left of the tick must be known before.
    const { name, job, successor } = await pendingFinalizer(lab, {
      ...FINISHES_AT_ONCE,
      ttlSecondsAfterFinished: 0,
    });
    const [before] = lab.seen.history(name);
    await world().client.delete(resources.leases, {
      namespace: lab.namespace,
      name: ledgerName(name),
    });
    await successor();
    await lab.seen.until("the old Job goes", () => job.deletedAt !== undefined);
    await lab.seen.until(
      "another ledger goes on",
      () => lab.seen.history(name).at(-1)?.leaseUid !== before?.leaseUid,
    );
    await lab.more(name, 2);
    expect(await lab.violationsAtEnd()).toEqual([]);
  });
});

describe.concurrent("with nothing pending", () => {
  it("a LockedCronJob that is deleted leaves nothing", async () => {
    await using lab = await world().lab();
    await lab.replica("a");
    await lab.create("gone", { job: NEVER_FINISHES, concurrencyPolicy: "Allow" });
    await lab.seen.created("gone", 3);
    await lab.remove("gone");
    await lab.seen.until(
      "Jobs and ledger go with it",
      () =>
        lab.seen.ledger("gone") === undefined &&
        lab.seen.jobs("gone").every(({ deletedAt }) => deletedAt !== undefined),
    );
    expect(lab.seen.violations("gone")).toEqual([]);
  });

  it("a LockedCronJob that is made anew does not wait for the lock of its namesake's run", async () => {
    await using lab = await world().lab();
    await lab.replica("a");
    const spec = { job: NEVER_FINISHES, lock: { leaseSeconds: 3_600 } };
    const old = await lab.create("again", spec);
    await lab.seen.created("again", 1);
    await lab.seen.settled("again");
    const { lockKey } = lab.seen.ledger("again")!.runs[0]!;
    await until("its lock is held for an hour", 90_000, async () => {
      const left = await Promise.all(world().redis.map(({ command }) => command("PTTL", lockKey)));
      return left.filter((ms) => Number(ms) > 60_000).length >= 3;
    });
    await lab.remove("again");
    await lab.seen.until("it is gone", () => lab.seen.owner("again") === undefined);
    await lab.create("again", spec);
    await lab.seen.until("a tick of the new one", () =>
      lab.seen.jobs("again").some(({ owner }) => owner !== old.metadata.uid),
    );
    expect(lab.seen.violations("again")).toEqual([]);
  });

  it("a Job that is deleted before its end makes room for the next tick", async () => {
    await using lab = await world().lab();
    await lab.replica("a");
    await lab.create("job", { job: NEVER_FINISHES });
    const [first] = await lab.seen.created("job", 1);
    await lab.seen.settled("job");
    await world().client.delete(resources.jobs, { namespace: lab.namespace, name: first!.name });
    await lab.seen.created("job", 2);
    await lab.seen.until("an event says so", () => lab.seen.events(EventReason.MissingJob)[0]);
    expect(lab.seen.violations("job")).toEqual([]);
  });
});
