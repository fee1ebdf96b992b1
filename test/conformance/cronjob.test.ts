/** Native CronJob as the oracle: the same specs on the same cluster over the same two ticks. */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KubeClient } from "../../src/kube/index.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { clientOf, installCrd } from "../crd/fixture.ts";
import { startReplica, type Replica } from "../harness/replica.ts";
import { startRedis, type RedisServer } from "../redis/server.ts";
import { CASES, type Case, type Difference } from "./cases.ts";
import { createPair, makeNamespaces, outcomeOf, see, suspendPair, type Outcome } from "./pair.ts";

const MINUTE = 60_000;

let cluster: ControlPlaneCluster;
let client: KubeClient;
let redis: RedisServer;
let replica: Replica;
/** The two ticks that are compared, minutes since the epoch. */
let ticks: readonly [number, number];
/** What became of each case on either side, as it was when all had come to their end, before a third tick. */
const ends = new Map<string, Pair>();

interface Pair {
  native: Outcome;
  ours: Outcome;
}

beforeAll(async () => {
  cluster = await startCluster({ mode: "control-plane", log: console.error });
  client = clientOf(cluster.adminKubeconfig);
  await installCrd(cluster);
  await cluster.kubectl(["create", "namespace", "lockedcron-system"]);
  await makeNamespaces(client);
  redis = await startRedis();
  replica = await startReplica({
    name: "replica-a",
    kubeconfig: cluster.kubeconfigPath,
    redis: [redis.url],
  });
  await replica.ready();
  // All are there some time before the first tick, or one side might see it and the other not.
  const left = MINUTE - (Date.now() % MINUTE);
  if (left < 20_000) await new Promise((resolve) => setTimeout(resolve, left + 1_000));
  for (const { name, change } of CASES) await createPair(client, name, change);
  const first = Math.floor(Date.now() / MINUTE) + 1;
  ticks = [first, first + 1];
  await until("both sides have begun with the second tick", 3 * MINUTE, async () => {
    await look();
    return [ends.get("allow-done")?.native, ends.get("allow-done")?.ours].every((side) =>
      side?.jobs.some((job) => job.name === `allow-done-${ticks[1]}`),
    );
  });
  // Each side is given the time that it needs to come to its end. What has not come to it is shown by its test.
  await until("all have come to the same end", 35_000, async () => {
    await look();
    return CASES.every((one) => isAsWanted(one, ends.get(one.name)));
  }).catch(() => undefined);
  // Only now: on the native side an edit would get in the way of a status that is being written.
  for (const { name } of CASES) await suspendPair(client, name);
}, 6 * MINUTE);

afterAll(async () => {
  await replica?.stop();
  await client?.[Symbol.asyncDispose]();
  await redis?.stop();
  await cluster?.stop();
});

describe("a LockedCronJob does what a CronJob does", () => {
  test.each(CASES)("$name", (one) => {
    const { native, ours } = ends.get(one.name) as Pair;
    expect(ours).toMatchObject({ jobs: namesOf(one).map((name) => ({ name })) });
    expect(reasonsOf(ours)).toEqual(one.reasons);
    if (!isForgetful(native, one)) {
      expect(without(ours, one.differs)).toEqual(without(native, one.differs));
    }
  });
});

async function look(): Promise<void> {
  const [native, ours] = [await see(client, "native"), await see(client, "ours")];
  const isCompared = (text: string): boolean =>
    !/-\d{8}\b/.test(text) || ticks.some((tick) => text.includes(`-${tick}`));
  for (const { name } of CASES) {
    ends.set(name, {
      native: outcomeOf(native, name, isCompared),
      ours: outcomeOf(ours, name, isCompared),
    });
  }
}

function isAsWanted(one: Case, pair: Pair | undefined): boolean {
  if (pair === undefined) return false;
  const { native, ours } = pair;
  return (
    isDeepStrictEqual(
      ours.jobs.map((job) => job.name),
      namesOf(one),
    ) &&
    isDeepStrictEqual(reasonsOf(ours), one.reasons) &&
    (isForgetful(native, one) ||
      isDeepStrictEqual(without(ours, one.differs), without(native, one.differs)))
  );
}

function namesOf({ name, jobs }: Case): string[] {
  return jobs.map((nth) => `${name}-${ticks[nth - 1]}`);
}

function reasonsOf({ events }: Outcome): string[] {
  return [...new Set(events.map((event) => event.split(" ")[1] ?? ""))].toSorted();
}

/**
 * The native controller says so itself when it has lost sight of a Job that it made (the write of its status failed, or came
 * too late): no oracle any more.
 */
function isForgetful(native: Outcome, { reasons }: Case): boolean {
  return reasonsOf(native).some(
    (reason) =>
      (reason === "UnexpectedJob" || reason === "MissingJob") && !reasons.includes(reason),
  );
}

function without(outcome: Outcome, { events, active }: Difference = {}): object {
  const { active: said, ...rest } = outcome.status;
  return {
    ...outcome,
    events: outcome.events.filter((event) => events?.test(event) !== true),
    status: active === true ? rest : { ...rest, active: said },
  };
}
