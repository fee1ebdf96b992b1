/** The CRD, rights or credentials are missing: said where people look, and well again without a restart when mended. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { ConditionType, Reason } from "../../src/api/reasons.ts";
import { startCluster, type ControlPlaneCluster, type Kubeconfig } from "../cluster/cluster.ts";
import { openCertificates } from "../cluster/certs.ts";
import { until } from "../cluster/proc.ts";
import { installCrd, RBAC } from "../crd/fixture.ts";
import { startReplica, type LogLine, type Replica } from "../harness/replica.ts";
import { conditionOf, openWorld, type World } from "./world.ts";

const SYSTEM = "lockedcron-system";
const ROLE = "clusterrole/lockedcron-operator";

let cluster: ControlPlaneCluster;
let world: World;
let operator: Kubeconfig;
let folder: string;

beforeAll(async () => {
  cluster = await startCluster({ mode: "control-plane" });
  world = await openWorld(cluster);
  operator = await cluster.userKubeconfig({ user: "operator" });
  folder = mkdtempSync(join(tmpdir(), "lockedcron-access-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await world[Symbol.asyncDispose]();
  await cluster.stop();
});

function start(name: string, kubeconfig: string): Promise<Replica> {
  return startReplica({
    name,
    kubeconfig,
    namespace: SYSTEM,
    redis: world.redis.map(({ url }) => url),
  });
}

/** One check of /readyz?verbose. */
async function check(replica: Replica, name: string, says: RegExp): Promise<void> {
  await until(`${replica.name}: readyz ${name} ${says}`, 90_000, async () => {
    const lines = (await replica.readyz()).split("\n");
    return lines.some((line) => line.includes(name) && says.test(line));
  });
}

const warns = (says: RegExp) => (line: LogLine) =>
  line.level === "warn" && says.test(JSON.stringify(line));

const kubectl = (...args: string[]) => cluster.kubectl(args);

/** Takes a verb of the operator's role away, or gives it back. */
async function setVerbs(resource: string, change: (verbs: string[]) => string[]): Promise<void> {
  const role = JSON.parse(await kubectl("get", ROLE, "--output=json")) as {
    rules: { resources: string[]; verbs: string[] }[];
  };
  const rule = role.rules.find(({ resources }) => resources.includes(resource))!;
  rule.verbs = change(rule.verbs);
  await cluster.kubectl(["replace", "--filename=-"], { stdin: JSON.stringify(role) });
}

/** Never half a file. */
function writeAtOnce(path: string, text: string): void {
  writeFileSync(`${path}.part`, text);
  renameSync(`${path}.part`, path);
}

/** The same user of the same server, by a certificate that another CA has signed. */
async function ofAnotherAuthority(kubeconfig: string): Promise<string> {
  const strangers = await openCertificates(join(folder, "pki"));
  const { cert, key } = await strangers.issue("admin", {
    user: "admin",
    groups: ["system:masters"],
  });
  const config = parse(kubeconfig) as { users: { user: Record<string, string> }[] };
  for (const { user } of config.users) {
    user["client-certificate-data"] = Buffer.from(cert).toString("base64");
    user["client-key-data"] = Buffer.from(key).toString("base64");
  }
  return stringify(config);
}

describe.concurrent("a replica without", () => {
  it("rights, then the CRD, then single rights", async () => {
    await using replica = await start("a", operator.path);
    await replica.line("names the missing right", warns(/forbidden.*kube-system/));
    await check(replica, "rbac", /\[-\].*forbidden/);

    await kubectl("apply", `--filename=${RBAC}`);
    const grant = ["--user=operator", `--${ROLE.replace("/", "=")}`];
    await kubectl("create", "clusterrolebinding", "op", ...grant);
    await kubectl(
      "create",
      "rolebinding",
      "op",
      `--namespace=${SYSTEM}`,
      "--user=operator",
      "--role=lockedcron-operator",
    );
    await replica.line("names the missing CRD", warns(/lockedcronjobs.*NotFound/));
    await check(replica, "crd", /\[-\].*crds\/lockedcronjobs\.yaml/);

    await installCrd(cluster);
    await replica.line("takes ticks", ({ event }) => event === "Started");
    await replica.ready();
    await using lab = await world.lab(SYSTEM);
    await lab.create("job");
    await lab.seen.created("job", 1);

    await setVerbs("jobs", (verbs) => verbs.filter((verb) => verb !== "create"));
    const refused = await lab.seen.until("a condition names it", () => {
      const ready = conditionOf(lab.seen.owner("job"), ConditionType.Ready);
      return ready?.status === "False" && ready.reason === Reason.CreateRefused && ready;
    });
    expect(refused.message).toMatch(/cannot create resource "jobs"/);
    await setVerbs("jobs", (verbs) => [...verbs, "create"]);
    await lab.more("job", 1);

    await setVerbs("leases", (verbs) => verbs.filter((verb) => verb !== "update"));
    await replica.line("names it", warns(/cannot update resource .{0,3}leases/));
    await check(replica, "rbac", /\[-\].*leases/);
    await setVerbs("leases", (verbs) => [...verbs, "update"]);
    await lab.more("job", 2);
    await replica.ready();

    expect(await lab.violationsAtEnd()).toEqual([]);
    expect(await replica.stop()).toBe(0);
  });

  it("a certificate that the server knows, until the file holds one", async () => {
    const path = join(folder, "kubeconfig");
    writeAtOnce(path, await ofAnotherAuthority(cluster.adminKubeconfig));
    await using replica = await start("b", path);
    await replica.line("is not known", warns(/Unauthorized/));
    await check(replica, "api-server", /\[-\].*Unauthorized/);

    writeAtOnce(path, cluster.adminKubeconfig);
    // The other test brings the CRD.
    await replica.line("takes ticks", ({ event }) => event === "Started");
    await replica.ready();
    expect(JSON.stringify(replica.lines)).not.toMatch(/PRIVATE KEY/);
  });
});
