/** What people change while it runs: passwords, TLS, what elects, which namespaces; and what a namespace may refuse. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openCertificates } from "../cluster/certs.ts";
import { until } from "../cluster/proc.ts";
import { isReady, openSite, PATIENCE_MS, SYSTEM, WORK, workload, type Site } from "./site.ts";
import { startTicking, type Ticking } from "./ticking.ts";

const REDIS = { quarantineSeconds: 31 };
const SECRET = "lockedcron-redis";

let site: Site;
let ticking: Ticking;

beforeAll(async () => {
  site = await openSite();
  await site.install({ redis: REDIS });
  ticking = await startTicking(site);
  await ticking.witness.created("often", 1, PATIENCE_MS);
  await site.operatorReady();
}, 900_000);
afterAll(async () => {
  await ticking?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

const kubectl = (...args: string[]) => site.cluster.kubectl(args);

const secretData = async (): Promise<Record<string, string>> => {
  const secret = await kubectl("get", "secret", SECRET, "--namespace", SYSTEM, "--output=json");
  return (JSON.parse(secret) as { data?: Record<string, string> }).data ?? {};
};

/** Every replica and node of the newest values, in its place. */
const settled = () =>
  until("all pods are in their places", 900_000, async () => {
    await site.operatorReady();
    const args = ["rollout", "status", "statefulset/lockedcron-redis", "--namespace", SYSTEM];
    await kubectl(...args, "--timeout=600s");
    return true;
  });

test("passwords are replaced: no replica is refused by any node, and no tick is lost", async () => {
  const before = await secretData();
  const auth = { rotation: "second", rotationStepSeconds: 30 };
  await site.install({ redis: { ...REDIS, auth } });
  await until("the new password alone is left", PATIENCE_MS, async () => {
    const now = await secretData();
    return Object.keys(now).join() === "password" && now["password"] !== before["password"];
  });
  // Connections from now on: those of a replica that is new.
  const [victim] = await site.pods("operator");
  if (victim) await site.kill(victim);
  await site.operatorReady();
  expect(await site.helmTest()).toContain("ok    lock: acquired and released");
  const logs = await kubectl(
    "logs",
    "--namespace",
    SYSTEM,
    "--selector=app.kubernetes.io/component=operator",
    "--tail=-1",
  );
  expect(logs).not.toMatch(/WRONGPASS|NOAUTH/);
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});

test("TLS is turned on", async () => {
  const pki = await openCertificates(`${site.cluster.dir}/redis-pki`);
  const hosts = [`*.${SECRET}.${SYSTEM}.svc`, "localhost"];
  const pair = await pki.issue("redis", { user: "redis", hosts });
  const files = [`tls.crt=${pair.certFile}`, `tls.key=${pair.keyFile}`, `ca.crt=${pki.caFile}`];
  const from = files.map((file) => `--from-file=${file}`);
  await kubectl("create", "secret", "generic", "redis-tls", "--namespace", SYSTEM, ...from);
  await site.install({ redis: { ...REDIS, tls: { enabled: true, existingSecret: "redis-tls" } } });
  await settled();
  expect(await site.helmTest()).toContain("ok    lock: acquired and released");
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});

test("three Redis nodes become five: the old list is retired, the new one elects", async () => {
  const tls = { enabled: true, existingSecret: "redis-tls" };
  await site.install({ redis: { ...REDIS, tls, nodes: 5, previousNodes: 3 } });
  await settled();
  await until("the five elect", PATIENCE_MS, async () =>
    /acquired and released \(5 of 5/.test(await site.helmTest().catch(() => "")),
  );
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});

test("the ledger alone elects, with every Redis gone", async () => {
  await site.install({ redis: { enabled: false }, lock: { backend: "kubernetes" } });
  await site.operatorReady();
  await until("the Redis nodes are gone", PATIENCE_MS, async () => {
    return (await site.pods("redis")).length === 0;
  });
  await ticking.goesOn();
  await until("the condition says so", PATIENCE_MS, () =>
    Promise.resolve(
      ticking.witness
        .owner("often")
        ?.status?.conditions?.some(({ message }) => message.includes("the ledger alone elects")),
    ),
  );
  expect(await ticking.faults()).toEqual([]);
});

test("a quota that is full is said, and the tick runs when there is room", async () => {
  await kubectl("create", "quota", "none", "--hard=count/jobs.batch=0", "--namespace", WORK);
  await ticking.witness.until(
    "the refusal is told",
    () => ticking.witness.events("FailedCreate").some(({ message }) => /quota/.test(message)),
    PATIENCE_MS,
  );
  await kubectl("delete", "quota", "none", "--namespace", WORK);
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});

test("with a list of namespaces the operator has no rights beyond it", async () => {
  const elsewhere = workload("elsewhere", "@every 10s").replace(`"${WORK}"`, '"default"');
  await site.cluster.kubectl(["apply", "--filename=-"], { stdin: elsewhere });
  await site.install({
    redis: { enabled: false },
    lock: { backend: "kubernetes" },
    watchNamespaces: [WORK],
  });
  await site.operatorReady();
  await until("only new replicas are left", PATIENCE_MS, async () => {
    const found = await site.pods("operator");
    return found.length === 3 && found.every(isReady);
  });
  const as = `--as=system:serviceaccount:${SYSTEM}:lockedcron`;
  const may = (verb: string, what: string, where: string): Promise<string> =>
    kubectl("auth", "can-i", verb, what, "--namespace", where, as).then(
      (text) => text.trim(),
      (error: unknown) => (String(error).includes("no") ? "no" : Promise.reject(error as Error)),
    );
  expect(await may("create", "jobs.batch", WORK)).toBe("yes");
  expect(await may("create", "jobs.batch", "default")).toBe("no");
  expect(await may("list", "lockedcronjobs.lockedcron.io", "default")).toBe("no");
  const job = ["create", "job", "intruder", "--image=busybox:1.36", "--namespace=default", as];
  await expect(kubectl(...job)).rejects.toThrow(/forbidden/i);
  const count = async (): Promise<number> =>
    (await kubectl("get", "jobs", "--namespace=default", "--output=name")).split("\n").length;
  const before = await count();
  await ticking.goesOn();
  await ticking.goesOn();
  expect(await count()).toBe(before);
  expect(await ticking.faults()).toEqual([]);
});
