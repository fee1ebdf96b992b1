/** What breaks around an installation, one after the other on the same two nodes; ticks are counted over all of it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../cluster/proc.ts";
import { allReady, isReady, openSite, PATIENCE_MS, type Pod, type Site } from "./site.ts";
import { startTicking, type Ticking } from "./ticking.ts";

/** Short, so that a test need not wait long for a node to be in its place again; the lease of the workload is 30 s. */
const VALUES = { redis: { nodes: 5, quarantineSeconds: 31 } };

let site: Site;
let ticking: Ticking;

beforeAll(async () => {
  site = await openSite({ nodes: 2 });
  await site.install(VALUES);
  ticking = await startTicking(site);
  await ticking.witness.created("often", 1, PATIENCE_MS);
  await allReady(site, "operator", 3);
  await allReady(site, "redis", 5);
}, 900_000);
afterAll(async () => {
  await ticking?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});
async function some(component: "operator" | "redis", count: number): Promise<Pod[]> {
  await allReady(site, component, component === "redis" ? 5 : 3);
  return (await site.pods(component)).slice(0, count);
}

/** When all is in its place again: what is wrong with the ticks until then. */
async function faultsAfterAll(): Promise<string[]> {
  await ticking.goesOn();
  await allReady(site, "operator", 3);
  await allReady(site, "redis", 5);
  return ticking.faults();
}

test("all replicas are killed at once: ticks are caught up or say why not", async () => {
  await Promise.all((await some("operator", 3)).map((pod) => site.kill(pod)));
  expect(await faultsAfterAll()).toEqual([]);
});

test("a Redis node is killed: nothing is to be seen of it", async () => {
  const [victim] = await some("redis", 1);
  if (victim) await site.kill(victim);
  expect(await faultsAfterAll()).toEqual([]);
});

test("two of five Redis nodes are killed: the majority goes on", async () => {
  await Promise.all((await some("redis", 2)).map((pod) => site.kill(pod)));
  expect(await faultsAfterAll()).toEqual([]);
});

test("the whole StatefulSet is restarted: one node after the other, each after its quarantine", async () => {
  const before = new Map(
    (await site.pods("redis")).map(({ metadata }) => [metadata.name, metadata.uid]),
  );
  await site.install({ redis: { ...VALUES.redis, podAnnotations: { restarted: "yes" } } });
  let most = 0;
  await until("all of them are new and ready", 900_000, async () => {
    const found = await site.pods("redis");
    most = Math.max(most, 5 - found.filter(isReady).length);
    return (
      found.length === 5 &&
      found.every((pod) => isReady(pod) && before.get(pod.metadata.name) !== pod.metadata.uid)
    );
  });
  expect(most).toBe(1);
  expect(await faultsAfterAll()).toEqual([]);
}, 1_200_000);

test("the API server is restarted in mid-tick", async () => {
  await site.built().apiServer.restart({ how: "SIGKILL" });
  expect(await faultsAfterAll()).toEqual([]);
});

test("a node is cut off, and comes back", async () => {
  const [first] = await some("operator", 1);
  if (first === undefined) return;
  const node = site.nodeOf(first);
  await node.cutOff();
  try {
    await ticking.goesOn();
  } finally {
    await node.heal();
  }
  expect(await faultsAfterAll()).toEqual([]);
});

test("a node is drained: nobody waits for more than the quarantine", async () => {
  const [first] = await some("operator", 1);
  if (first === undefined) return;
  const { name } = site.nodeOf(first);
  const words = ["--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=15m"];
  await site.cluster.kubectl(["drain", name, ...words]);
  await ticking.goesOn();
  await site.cluster.kubectl(["uncordon", name]);
  expect(await faultsAfterAll()).toEqual([]);
}, 1_200_000);
