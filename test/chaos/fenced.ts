/**
 * A replica stands still between its claim and its POST, and is held for dead though it is not: another process has its
 * name, or its pod was deleted by force. What it sent then would meet nothing: its Job is done and gone. So it must not
 * send, however long it stood still.
 */
import { describe, expect, it } from "vitest";
import type { LogLine, Replica } from "../harness/replica.ts";
import { FINISHES_AT_ONCE, nameFor, useWorld, type Lab, type ReplicaChoices } from "./world.ts";
import type { KubeObject } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";

const job = { ...FINISHES_AT_ONCE, ttlSecondsAfterFinished: 0 };
const requestBoundMs = 500;

const world = useWorld();

/** It has claimed a tick that the other one then launched; as nobody knows whether it lives, the Job is kept. */
async function standsStill(lab: Lab, choices: ReplicaChoices & { name: string }) {
  const victim = await lab.replica(choices.name, {
    ...choices,
    faults: { steps: [{ after: "claimed", do: "stop" }], requestBoundMs },
  });
  await lab.replica("other", { faults: { requestBoundMs } });
  const name = nameFor(lab.namespace, "job", [victim.name, "other"]);
  await lab.create(name, { job });
  await victim.line("stands still", ({ event }) => event === "Fault");
  const kept = await lab.seen.until("another one launches the tick and the TTL wants it gone", () =>
    lab.seen
      .jobs(name)
      .find(({ attempt, object }) => attempt > 1 && object.metadata.deletionTimestamp),
  );
  return { victim, name, kept };
}

/** What it launches when it wakes up, until it ends. */
async function launchedBy(victim: Replica): Promise<LogLine[]> {
  victim.resume();
  await victim.line("ends", ({ event }) => event === "Superseded");
  expect(await victim.exited).toEqual({ code: 1, signal: null });
  return victim.lines.filter(({ event }) => event === "Launched");
}

describe.concurrent("a replica that is held for dead launches nothing when it wakes up", () => {
  it("after another process has taken its name", async () => {
    await using lab = await world().lab();
    const { victim, name, kept } = await standsStill(lab, { name: "victim" });
    await lab.replica("victim", { faults: { requestBoundMs } });
    await lab.seen.until("the Job goes", () => kept.deletedAt !== undefined);
    expect(await launchedBy(victim)).toEqual([]);
    await lab.more(name, 2);
    expect(await lab.violationsAtEnd()).toEqual([]);
  });

  it("after its pod was deleted by force", async () => {
    await using lab = await world().lab();
    const { client } = world();
    const pod = (await client.create(resources.pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "operator", namespace: lab.namespace },
      spec: { containers: [{ name: "main", image: "none.invalid/none" }] },
    } as unknown as KubeObject)) as KubeObject & { metadata: { uid: string } };
    const { victim, name, kept } = await standsStill(lab, {
      name: pod.metadata.uid,
      env: { POD_UID: pod.metadata.uid, POD_NAME: "operator" },
    });
    const key = { namespace: lab.namespace, name: "operator" };
    await client.delete(resources.pods, key, { gracePeriodSeconds: 0 });
    await lab.seen.until("the Job goes", () => kept.deletedAt !== undefined);
    expect(await launchedBy(victim)).toEqual([]);
    await lab.more(name, 2);
    expect(await lab.violationsAtEnd()).toEqual([]);
  });
});
