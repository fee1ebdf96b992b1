import type { TestProject } from "vitest/node";
import { startCluster } from "./cluster.ts";

/** What the suites of a project read by `inject("cluster")`. `openCluster(inject("cluster").name)` gives the rest. */
export interface SharedCluster {
  readonly name: string;
  readonly server: string;
  readonly kubeconfigPath: string;
  readonly kubectlPath: string;
}

declare module "vitest" {
  interface ProvidedContext {
    cluster: SharedCluster;
  }
}

/**
 * Global set-up of a vitest project: one control plane for the whole run. Suites share it, each in namespaces of its own;
 * one that stops or changes servers starts a cluster of its own instead.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await startCluster({
    mode: "control-plane",
    log: (line) => console.error(`[cluster] ${line}`),
  });
  const { name, server, kubeconfigPath, kubectlPath } = cluster;
  project.provide("cluster", { name, server, kubeconfigPath, kubectlPath });
  return () => cluster.stop();
}
