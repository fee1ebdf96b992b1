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
import { call } from "../cli/call.ts";
import { openHelm, render } from "../chart/helm.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { clientOf, installCrd } from "../crd/fixture.ts";
import { openAudit, type Audit, type Rule, type Use } from "./audit.ts";
import { makeHeldJob, makeWorld, nameOf, rightsOf, rulesFrom, type Right } from "./rights.ts";

const PATIENCE_MS = 120_000;

let audit: Audit;
let cluster: ControlPlaneCluster;
let admin: KubeClient;
let rights: Right[];
/** Kind and name of each role that the chart renders. */
let roles: ReadonlyMap<string, Rule[]>;

beforeAll(async () => {
  audit = await openAudit();
  const flags = {
    ...audit.flags,
    // As OpenShift has it: what lockedcronjobs/finalizers is for.
    "enable-admission-plugins": "OwnerReferencesPermissionEnforcement",
  };
  [cluster, roles] = await Promise.all([
    startCluster({ mode: "control-plane", flags: { apiServer: flags } }),
    rolesOfChart(),
  ]);
  rights = [
    ...rightsIn("served", "ClusterRole lockedcron-operator").map((right) =>
      right.names.length === 0 ? right : { ...right, where: "cluster" as const },
    ),
    ...rightsIn("own", "Role lockedcron"),
  ];
  admin = clientOf(cluster.adminKubeconfig);
  await installCrd(cluster);
}, 600_000);
afterAll(async () => {
  await admin?.[Symbol.asyncDispose]();
  await cluster?.stop();
  await audit?.[Symbol.asyncDispose]();
});

interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: Rule[];
}

async function rolesOfChart(): Promise<ReadonlyMap<string, Rule[]>> {
  const text = await render(await openHelm());
  const all = parseAllDocuments(text).map((document) => document.toJS() as Rendered | null);
  return new Map(
    all.flatMap((each) =>
      each?.rules === undefined ? [] : [[`${each.kind} ${each.metadata.name}`, each.rules]],
    ),
  );
}

function rightsIn(where: Right["where"], role: string): Right[] {
  const rules = roles.get(role);
  if (rules === undefined) throw new Error(`the chart renders no ${role}`);
  return rightsOf(where, rules);
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
  await giveRights(user, left, { served, own });
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

/** Two namespaces, and these rights in them. */
async function giveRights(
  user: string,
  given: readonly Right[],
  { served, own }: { readonly served: string; readonly own: string },
): Promise<void> {
  const rulesIn = (where: Right["where"]) =>
    rulesFrom(given.filter((right) => right.where === where));
  for (const name of [served, own]) await admin.create(namespaces, { metadata: { name } });
  const items = [
    ...grant("Role", user, "served", rulesIn("served"), served),
    ...grant("Role", user, "own", rulesIn("own"), own),
    ...grant("ClusterRole", user, user, rulesIn("cluster")),
  ];
  const stdin = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await cluster.kubectl(["create", "--filename=-"], { stdin });
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

/** Side by side, a few at a time: each replica has Jobs that are made and end. */
const AT_ONCE = 8;

async function each<T>(all: readonly T[], work: (one: T) => Promise<string[]>): Promise<string[]> {
  const left = [...all];
  const faults: string[] = [];
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      faults.push(...(await work(next)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return faults;
}

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
  expect(rights.length).toBeGreaterThan(20);
  expect(await each(trials, ({ missing, number }) => judge(missing, number))).toEqual([]);
});

interface Helper {
  readonly what: string;
  readonly roles: readonly (readonly [Right["where"], role: string])[];
  argv(place: { readonly served: string; readonly own: string }): string[];
}

/** The chart's Jobs that have a role of their own. */
const HELPERS: readonly Helper[] = [
  {
    what: "uninstall",
    roles: [
      ["served", "ClusterRole lockedcron-uninstall"],
      ["own", "Role lockedcron-uninstall"],
    ],
    argv: ({ served, own }) => [
      "release-finalizers",
      `--namespace=${served}`,
      `--operator-namespace=${own}`,
    ],
  },
  {
    what: "credentials",
    roles: [["own", "Role lockedcron-credentials"]],
    argv: ({ own }) => ["redis-password", `--namespace=${own}`, "--secret=lockedcron-redis"],
  },
];

test("no role of the chart is left out of this", () => {
  const people = ["ClusterRole lockedcron-edit", "ClusterRole lockedcron-view"];
  const judged = ["ClusterRole lockedcron-operator", "Role lockedcron", ...people];
  const helpers = HELPERS.flatMap((helper) => helper.roles.map(([, role]) => role));
  expect([...roles.keys()].toSorted()).toEqual([...judged, ...helpers].toSorted());
});

test.each(HELPERS)(
  "the Job $what fails without any one of its rights, and says which",
  async (helper) => {
    const all = helper.roles.flatMap(([where, role]) => rightsIn(where, role));
    const trials = [undefined, ...all].map((missing, number) => ({ missing, number }));
    const faults = await each(trials, async ({ missing, number }) => {
      const user = `${helper.what}-${number}`;
      const place = { served: `served-by-${user}`, own: `own-of-${user}` };
      const left = all.filter((right) => right !== missing);
      await giveRights(user, left, place);
      await makeWorld(admin, place);
      await makeHeldJob(admin, place.served);
      const secret = ["create", "secret", "generic", "lockedcron-redis", "--namespace", place.own];
      await cluster.kubectl(secret);
      const { path } = await cluster.userKubeconfig({ user });
      const said = await call([...helper.argv(place), `--kubeconfig=${path}`], [], Date.now);
      if (missing === undefined) {
        return said.code === 0 ? [] : [`all rights: exit code ${said.code}, ${said.error}`];
      }
      return said.code === 1 && tells(said.error, missing)
        ? []
        : [`${nameOf(missing)}: exit code ${said.code}, ${said.error}`];
    });
    expect(all.length).toBeGreaterThan(1);
    expect(faults).toEqual([]);
  },
);
