/** What suites share that ask the project's own cluster about manifests. */
import { afterAll, beforeAll, inject } from "vitest";
import type { KubeClient } from "../../src/kube/index.ts";
import { openCluster } from "../cluster/cluster.ts";
import { clientOf, installCrd, type Manifest } from "./fixture.ts";

/** An administrator's client for the tests of this file, with the CRD installed. */
export function useCrd(): () => KubeClient {
  let client: KubeClient;
  beforeAll(async () => {
    const cluster = await openCluster(inject("cluster").name);
    client = clientOf(cluster.adminKubeconfig);
    await installCrd(cluster);
  });
  afterAll(() => client[Symbol.asyncDispose]());
  return () => client;
}

export const podOf = (m: Manifest) => m.spec.jobTemplate.spec.template.spec;
export const jobOf = (m: Manifest) => m.spec.jobTemplate.spec;
export const containerOf = (m: Manifest) => podOf(m).containers[0];
