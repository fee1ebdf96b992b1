/** What `--keep` leaves running: how to use it, and how to end it. */
import { join } from "node:path";
import { ClusterError } from "../cluster/errors.ts";
import { gone, isAlive, signal } from "../cluster/proc.ts";
import { loadRecord, reap, removeCluster } from "../cluster/state.ts";
import type { Stage } from "./stage.ts";

/** Name of its cluster. */
export const KEPT = "demo";

const END_MS = 60_000;

/** @throws ClusterError when one runs */
export async function checkNoneKept(): Promise<void> {
  await reap(() => {});
  if ((await loadRecord(KEPT)) === undefined) return;
  throw new ClusterError("a demo is being kept already: make demo-down ends it");
}

export function howTo({ cluster, players, redis, dir }: Stage): string[] {
  return [
    "",
    "It goes on in the background. In this shell:",
    "",
    `  export KUBECONFIG=${cluster.kubeconfigPath}`,
    `  alias kubectl=${cluster.kubectlPath}`,
    "  kubectl get lockedcronjobs,jobs,pods",
    "  kubectl get lcj every-ten-seconds --output yaml    # status: active runs, next times, token, decisions",
    "",
    "Break something yourself; a replica that ends is started anew after a second:",
    "",
    ...players.map(
      ({ name, pid, url }) =>
        `  kill -9 ${String(pid).padEnd(8)} # ${name}; ${url}/metrics, ${url}/readyz?verbose`,
    ),
    `  kill -9 ${redis.map(({ pid }) => pid).join(" ")}    # the five Redis; these stay dead`,
    `  tail -f ${join(dir, "*.log")}`,
    "",
    "To end it: make demo-down",
  ];
}

/** Ends what is kept. @returns the exit code */
export async function takeDown(): Promise<number> {
  const record = await loadRecord(KEPT);
  if (record === undefined) {
    console.log("no demo is being kept");
    return 0;
  }
  const { owner } = record;
  if (owner === null) {
    throw new ClusterError(
      `cluster ${KEPT} was not started by the demo: make cluster-down NAME=${KEPT}`,
    );
  }
  if (isAlive(owner)) {
    signal(owner, "SIGTERM");
    await gone([owner], END_MS);
  }
  await removeCluster(KEPT);
  console.log("the demo is down");
  return 0;
}
