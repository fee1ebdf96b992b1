/** The life of an installation on a real node, in order: installed, running, killed, upgraded, removed, back again. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../cluster/proc.ts";
import { openAudit, unused, type Audit, type Rule } from "./audit.ts";
import {
  allReady,
  isReady,
  ON_KIND,
  openSite,
  PATIENCE_MS,
  startSeconds,
  SYSTEM,
  WORK,
  type Site,
} from "./site.ts";
import { startTicking, type Ticking } from "./ticking.ts";

let site: Site;
let ticking: Ticking;
let audit: Audit;

beforeAll(async () => {
  audit = await openAudit();
  site = await openSite({ flags: { apiServer: audit.flags } });
}, 600_000);
afterAll(async () => {
  await ticking?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
  await audit?.[Symbol.asyncDispose]();
});

test("after helm install the first LockedCronJobs run", async () => {
  const begun = performance.now();
  const seconds = (): string => `${Math.round((performance.now() - begun) / 1000)} s`;
  await site.install();
  ticking = await startTicking(site);
  await ticking.witness.created("often", 1, PATIENCE_MS);
  console.error(`[e2e] helm install to the first Job: ${seconds()}`);
  await site.operatorReady();
  console.error(`[e2e] helm install to three replicas ready: ${seconds()}`);
  const starts = (await site.pods("operator")).map((pod) => `${startSeconds(pod)} s`);
  console.error(`[e2e] container started to ready: ${starts.join(", ")}`);
  await ticking.witness.created("minutely", 1, PATIENCE_MS);
  await ticking.witness.until(
    "a run has ended well",
    () => ticking.witness.owner("often")?.status?.lastSuccessfulTime !== undefined,
    PATIENCE_MS,
  );
  expect(await ticking.faults()).toEqual([]);
});

test("helm test acquires and releases a lock on the chart's own Redis", async () => {
  const said = await site.helmTest();
  expect(said).toMatch(/ok {4}lock: acquired and released .*\nok {4}crd: .*\nok {4}job: /);
});

test("a replica that is killed is not missed, and comes back", async () => {
  const [victim] = await site.pods("operator");
  if (victim === undefined) throw new Error("no replica");
  await site.kill(victim);
  await ticking.goesOn();
  await until("its container was started again", PATIENCE_MS, async () => {
    const pod = (await site.pods("operator")).find(
      ({ metadata }) => metadata.uid === victim.metadata.uid,
    );
    return (pod?.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0;
  });
  await allReady(site, "operator", 3);
  const again = (await site.pods("operator")).find(
    ({ metadata }) => metadata.uid === victim.metadata.uid,
  );
  if (again) console.error(`[e2e] container started again to ready: ${startSeconds(again)} s`);
  expect(await ticking.faults()).toEqual([]);
});

test("an upgrade replaces every replica, and no tick is lost", async () => {
  const before = new Set((await site.pods("operator")).map(({ metadata }) => metadata.uid));
  await site.install({ podAnnotations: { changed: "yes" } });
  await site.operatorReady();
  const after = (await site.pods("operator")).filter(isReady).map(({ metadata }) => metadata.uid);
  expect(after).toHaveLength(3);
  expect(after.filter((uid) => before.has(uid))).toEqual([]);
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});

/** Needed, though nothing in this file brings the operator to it for sure; each with the test that does. */
const USED_ELSEWHERE = [
  // An event that happens again is counted up: test/kube/client.test.ts.
  "patch /events",
  // Live looks, when an answer was lost, a replica died in mid-launch or a cache is behind: test/chaos.
  "get batch/jobs",
  "get lockedcron.io/lockedcronjobs",
  "get coordination.k8s.io/leases",
  "get /pods",
  // Asked of the authorizer, not by a request: test/crd/rbac.test.ts.
  "update lockedcron.io/lockedcronjobs/finalizers",
];

test.skipIf(ON_KIND)(
  "the operator has used each of its rights, and asked for none that it does not have",
  async () => {
    await ticking.witness.until(
      "a Job is past the history limit",
      () => ticking.witness.events("SuccessfulDelete").length > 0,
      PATIENCE_MS,
    );
    const uses = await audit.uses(`system:serviceaccount:${SYSTEM}:lockedcron`);
    expect(uses.filter(({ refused }) => refused)).toEqual([]);
    const rulesOf = async (...role: string[]): Promise<Rule[]> => {
      const text = await site.cluster.kubectl(["get", ...role, "--output=json"]);
      return (JSON.parse(text) as { rules: Rule[] }).rules;
    };
    const everywhere = await rulesOf("clusterrole", "lockedcron-operator");
    const needless = (rules: Rule[], namespace?: string): string[] =>
      unused(rules, uses, namespace).filter((right) => !USED_ELSEWHERE.includes(right));
    expect(needless(everywhere)).toEqual([]);
    const own = await rulesOf("role", "lockedcron", "--namespace", SYSTEM);
    expect(needless(own, SYSTEM)).toEqual([]);
  },
);

test("helm uninstall leaves the CRD and what is people's, and a new installation goes on", async () => {
  await site.uninstall();
  await until("all pods are gone", PATIENCE_MS, async () => {
    const found = await Promise.all([site.pods("operator"), site.pods("redis")]);
    return found.flat().length === 0;
  });
  const left = async (kinds: string, namespace: string) =>
    (await site.cluster.kubectl(["get", kinds, "--namespace", namespace, "--output=name"]))
      .split("\n")
      .filter(
        (name) => name !== "" && !/configmap\/kube-root-ca|serviceaccount\/default/.test(name),
      );
  const kinds =
    "deployments,statefulsets,jobs,services,configmaps,secrets,serviceaccounts,roles,rolebindings,leases,poddisruptionbudgets";
  expect(await left(kinds, SYSTEM)).toEqual([]);
  const cluster = await site.cluster.kubectl([
    "get",
    "clusterroles,clusterrolebindings,customresourcedefinitions",
    "--output=name",
  ]);
  expect(cluster.split("\n").filter((name) => name.includes("lockedcron"))).toEqual([
    "customresourcedefinition.apiextensions.k8s.io/lockedcronjobs.lockedcron.io",
  ]);
  expect(await left("lockedcronjobs", WORK)).toHaveLength(2);
  const held = await site.cluster.kubectl([
    "get",
    "jobs,leases",
    "--namespace",
    WORK,
    "--output=jsonpath={.items[*].metadata.finalizers}",
  ]);
  expect(held).toBe("");

  await site.install();
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});
