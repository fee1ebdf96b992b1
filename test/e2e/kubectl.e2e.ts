/** Without Helm: deploy/install as it is, on a real node; removed as docs/install.md says, and applied again. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../../tools/ci/command.ts";
import { STATIC_MANIFEST } from "../chart/static.ts";
import { until } from "../cluster/proc.ts";
import { run } from "../cluster/run.ts";
import { buildImage, OPERATOR_IMAGE } from "../image/build.ts";
import { allReady, openSite, PATIENCE_MS, SYSTEM, WORK, type Site } from "./site.ts";
import { startTicking, type Ticking } from "./ticking.ts";

let site: Site;
let ticking: Ticking;

beforeAll(async () => {
  const text = await readFile(join(ROOT, "package.json"), "utf8");
  const { version } = JSON.parse(text) as { version: string };
  const name = `${OPERATOR_IMAGE}:${version}`;
  const image = await buildImage({ name, stages: "offline", version, log: console.error });
  site = await openSite({ images: [image], namespaces: [WORK] });
}, 900_000);
afterAll(async () => {
  await ticking?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

const kubectl = (...args: string[]) => site.cluster.kubectl(args);

test("kubectl apply -k deploy/install is all that the first Job needs", async () => {
  const begun = performance.now();
  await kubectl("apply", "--kustomize", join(STATIC_MANIFEST, ".."));
  ticking = await startTicking(site);
  await ticking.witness.created("often", 1, PATIENCE_MS);
  const seconds = Math.round((performance.now() - begun) / 1000);
  console.error(`[e2e] kubectl apply to the first Job: ${seconds} s`);
  await site.operatorReady();
  await allReady(site, "redis", 3);
  await ticking.witness.until(
    "a majority of its Redis nodes elects",
    () =>
      ticking.witness
        .owner("often")
        ?.status?.conditions?.some(
          ({ type, status }) => type === "LockBackendAvailable" && status === "True",
        ),
    PATIENCE_MS,
  );
  expect(await ticking.faults()).toEqual([]);
});

test("removed without the CRD it leaves what is people's, and applied again it goes on", async () => {
  await kubectl("scale", "deployment/lockedcron", "--replicas=0", "--namespace", SYSTEM);
  await until("no replica is left", PATIENCE_MS, async () => {
    return (await site.pods("operator")).length === 0;
  });
  const release = ["release-finalizers", `--operator-namespace=${SYSTEM}`, "--wait-seconds=60"];
  const { kubeconfigPath } = site.cluster;
  const said = await run(
    process.execPath,
    [join(ROOT, "src/cli/main.ts"), ...release, `--kubeconfig=${kubeconfigPath}`],
    { cwd: ROOT },
  );
  expect(said).toMatch(/^Released: \d+ Jobs, \d+ Leases$/m);
  await kubectl("delete", "--filename", STATIC_MANIFEST, "--timeout=180s");
  const left = await kubectl("get", "lockedcronjobs", "--namespace", WORK, "--output=name");
  expect(left.trim().split("\n")).toHaveLength(2);
  const cluster = await kubectl("get", "clusterroles,clusterrolebindings", "--output=name");
  expect(cluster.split("\n").filter((name) => name.includes("lockedcron"))).toEqual([]);

  await kubectl("apply", "--kustomize", join(STATIC_MANIFEST, ".."));
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});
