/** `make kind-demo`: a kind cluster, the image built by Docker, the chart, the examples; it stays. */
import { join } from "node:path";
import { ROOT } from "../../tools/ci/command.ts";
import { CHART, openHelm } from "../chart/helm.ts";
import { startCluster } from "../cluster/cluster.ts";
import { run } from "../cluster/run.ts";

const NAME = "kind-demo";
const IMAGE = "ghcr.io/lockedcron/lockedcron:demo";
const SYSTEM = "lockedcron-system";
const log = (line: string): void => console.error(line);

const cluster = await startCluster({ mode: "kind", name: NAME, nodes: 3, keep: true, log });
log("docker builds the image");
await run("docker", ["build", "--tag", IMAGE, ROOT]);
const archive = join(cluster.dir, "image.tar");
await run("docker", ["save", "--output", archive, IMAGE]);
await cluster.loadImage(archive);

const helm = await openHelm();
const where = ["--namespace", SYSTEM, "--create-namespace", "--set", "image.tag=demo"];
const { kubeconfigPath: kubeconfig } = cluster;
console.log(await helm(["upgrade", "--install", "lockedcron", CHART, ...where], { kubeconfig }));
await cluster.kubectl(["apply", "--filename", join(ROOT, "examples")]);
console.log(
  [
    "The examples are applied. To look and to break things:",
    `  export KUBECONFIG=${kubeconfig}`,
    "  kubectl get lockedcronjobs,jobs --watch",
    `  kubectl delete pod --namespace ${SYSTEM} --selector app.kubernetes.io/component=operator`,
    `The end: make cluster-down NAME=${NAME}`,
  ].join("\n"),
);
