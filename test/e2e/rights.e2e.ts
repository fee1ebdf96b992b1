/**
 * Each right of the operator is needed, and misses nobody silently: one replica per right, side by side, each in namespaces
 * of its own and with every right of the chart but that one. What it is refused, by the API server's audit log, is that right
 * and nothing else; and it says so. No nodes, no root: `make e2e-rights` runs it alone.
 */
import { Writable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { resources } from "../../src/controller/caches.ts";
import { loadConfig } from "../../src/config.ts";
import { createOperator } from "../../src/operator.ts";
import { coreEvents, namespaces, type KubeClient } from "../../src/kube/index.ts";
import { createHealth, createLogger, createMetrics } from "../../src/telemetry/index.ts";
import { openHelm, render } from "../chart/helm.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { clientOf, installCrd } from "../crd/fixture.ts";
import { openAudit, type Audit, type Rule, type Use } from "./audit.ts";
import { makeWorld, nameOf, rightsOf, rulesFrom, type Right } from "./rights.ts";

const PATIENCE_MS = 120_000;

let audit: Audit;
let cluster: ControlPlaneCluster;
let admin: KubeClient;
let rights: Right[];

beforeAll(async () => {
  audit = await openAudit();
  const flags = {
    ...audit.flags,
    // As OpenShift has it: what lockedcronjobs/finalizers is for.
    "enable-admission-plugins": "OwnerReferencesPermissionEnforcement",
  };
  [cluster, rights] = await Promise.all([
    startCluster({ mode: "control-plane", flags: { apiServer: flags } }),
    rightsOfChart(),
  ]);
  admin = clientOf(cluster.adminKubeconfig);
  await installCrd(cluster);
}, 600_000);
afterAll(async () => {
  await admin?.[Symbol.asyncDispose]();
  await cluster?.stop();
  await audit?.[Symbol.asyncDispose]();
});

async function rightsOfChart(): Promise<Right[]> {
  const all = parseAllDocuments(await render(await openHelm())).map(
    (document) =>
      document.toJS() as { kind: string; metadata: { name: string }; rules: Rule[] } | null,
  );
  const rulesOf = (kind: string, name: string): Rule[] =>
    all.find((each) => each?.kind === kind && each.metadata.name === name)?.rules ?? [];
  const wide = rightsOf("served", rulesOf("ClusterRole", "lockedcron-operator"));
  return [
    ...wide.map((right) =>
      right.names.length === 0 ? right : { ...right, where: "cluster" as const },
    ),
    ...rightsOf("own", rulesOf("Role", "lockedcron")),
  ];
}

/** What the audit log calls the use of a right. */
function useOf({ group, resource, verb }: Right): string {
  // Asked for by the admission of a Job, in the operator's name.
  if (resource.endsWith("/finalizers")) return "create batch/jobs";
  return `${verb} ${group}/${resource}`;
}

interface Trial {
  /** As the audit log has it, each once. */
  refused(): Promise<string[]>;
  uses(): Promise<Use[]>;
  /** All that it said. */
  log(): string;
  stop(): Promise<void>;
}

/** Gives all rights but one, makes what a replica has to do there, and starts it. */
async function startTrial(missing: Right | undefined, number: number): Promise<Trial> {
  const user = `operator-${number}`;
  const [served, own] = [`served-${number}`, `own-${number}`];
  const left = rights.filter((right) => right !== missing);
  const rulesIn = (where: Right["where"]) =>
    rulesFrom(left.filter((right) => right.where === where));
  for (const name of [served, own]) await admin.create(namespaces, { metadata: { name } });
  const items = [
    ...grant("Role", user, "served", rulesIn("served"), served),
    ...grant("Role", user, "own", rulesIn("own"), own),
    ...grant("ClusterRole", user, user, rulesIn("cluster")),
  ];
  const stdin = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await cluster.kubectl(["create", "--filename=-"], { stdin });
  await makeWorld(admin, { served, own });
  const { path } = await cluster.userKubeconfig({ user });
  const argv = [
    "--lock-backend=kubernetes",
    `--kubeconfig=${path}`,
    `--namespace=${own}`,
    `--watch-namespaces=${served}`,
    `--replica=${user}`,
    "--take-over-after-ms=1000",
    "--membership-lease-seconds=3",
  ];
  const loaded = loadConfig({ argv, env: {} });
  if (loaded.kind !== "config") throw new Error(JSON.stringify(loaded));
  let said = "";
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      said += chunk.toString();
      done();
    },
  });
  const log = createLogger({ level: "info", format: "text", replica: user, output });
  const operator = createOperator({
    config: loaded.config,
    log,
    metrics: createMetrics({ version: "0.0.0", tzdata: "none" }),
    health: createHealth(),
    onSuperseded: () => undefined,
  });
  const abort = new AbortController();
  const started = operator.start(abort.signal).catch((error: unknown) => {
    if (!abort.signal.aborted) throw error;
  });
  const uses = () => audit.uses(user);
  return {
    uses,
    async refused() {
      const all = (await uses()).filter(({ refused }) => refused);
      return [...new Set(all.map(({ verb, resource }) => `${verb} ${resource}`))];
    },
    log: () => said,
    async stop() {
      abort.abort();
      await operator.stop();
      await started;
      await log.close();
    },
  };
}

function grant(kind: string, user: string, name: string, rules: Rule[], namespace?: string) {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const apiGroup = "rbac.authorization.k8s.io";
  const metadata = { name, namespace };
  return [
    { apiVersion, kind, metadata, rules },
    {
      apiVersion,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup, kind, name },
      subjects: [{ apiGroup, kind: "User", name: user }],
    },
  ];
}

/** Side by side, a few at a time: each has Jobs that are made and end. */
const AT_ONCE = 8;

/** Nothing of the end is asked for before it. */
const AT_THE_END = "delete coordination.k8s.io/leases";

/** The verdict on one trial, when it has met what it lacks; empty when all is well. */
async function judge(missing: Right | undefined, number: number): Promise<string[]> {
  const trial = await startTrial(missing, number);
  const name = missing === undefined ? "all rights" : nameOf(missing);
  const expected = missing === undefined ? [] : [useOf(missing)];
  const used = async (): Promise<Set<string>> =>
    new Set((await trial.uses()).map(({ verb, resource }) => `${verb} ${resource}`));
  const all = rights.map(useOf);
  const isTold = async (): Promise<boolean> =>
    missing === undefined ||
    tells(trial.log(), missing) ||
    tells(await toldInCluster(number), missing);
  try {
    if (missing === undefined || expected[0] === AT_THE_END) {
      await until(`${name}: the others are used`, PATIENCE_MS, async () => {
        const seen = await used();
        return all.every((use) => use === AT_THE_END || seen.has(use));
      });
    } else {
      await until(`${name}: it is missed, and told of`, PATIENCE_MS, async () => {
        return (await trial.refused()).length > 0 && (await isTold());
      });
    }
  } catch (error) {
    return [`${String(error)}: refused ${(await trial.refused()).join(", ")}`];
  } finally {
    await trial.stop();
  }
  const refused = (await trial.refused()).join(", ");
  if (refused !== expected.join(", ")) return [`${name}: refused ${refused || "nothing"}`];
  if (!(await isTold())) return [`${name}: nothing is said of it`];
  return missing === undefined && !(await used()).has(AT_THE_END)
    ? [`${name}: the Lease was not given up`]
    : [];
}

/** Events, and conditions of LockedCronJobs. */
async function toldInCluster(number: number): Promise<string> {
  const namespace = `served-${number}`;
  const lists = [
    await admin.list(coreEvents, { namespace }),
    await admin.list(resources.lockedCronJobs, { namespace }),
  ];
  return JSON.stringify(lists);
}

/** In the API server's own words, wherever people look for them. */
function tells(text: string, { resource, verb }: Right): boolean {
  if (resource.endsWith("/finalizers")) return text.includes("cannot set blockOwnerDeletion");
  return new RegExp(`cannot ${verb} resource \\\\*"${resource}\\\\*"`).test(text);
}

test("a replica without one of its rights is refused that one alone and says so; with all of them, none", async () => {
  const trials = [undefined, ...rights].map((missing, number) => ({ missing, number }));
  const faults: string[] = [];
  const work = async (): Promise<void> => {
    for (let next = trials.shift(); next !== undefined; next = trials.shift()) {
      faults.push(...(await judge(next.missing, next.number)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  expect(rights.length).toBeGreaterThan(20);
  expect(faults).toEqual([]);
});
