import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import {
  createKubeClient,
  isKubeError,
  resourceType,
  type KubeClient,
  type KubeObject,
} from "../../src/kube/index.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";

export const CRDS = path.resolve(import.meta.dirname, "../../crds");
export const RBAC = path.resolve(import.meta.dirname, "../../deploy/rbac.yaml");
export const EXAMPLES = path.resolve(import.meta.dirname, "../../examples");

/** Whatever a test puts into a manifest. */
// oxlint-disable-next-line typescript/no-explicit-any -- tests write wrong manifests on purpose
export type Manifest = KubeObject & { spec: any; status?: any };

export const lockedCronJobs = resourceType<Manifest>(
  "lockedcron.io/v1alpha1",
  "LockedCronJob",
  "lockedcronjobs",
);
export const cronJobs = resourceType<Manifest>("batch/v1", "CronJob", "cronjobs");

/** Applies crds/ and waits until its objects can be asked for. */
export async function installCrd(cluster: Cluster): Promise<void> {
  await cluster.kubectl(["apply", "--filename", CRDS]);
  await crdServed(cluster);
}

/** For whoever installs it in another way. */
export async function crdServed(cluster: Cluster): Promise<void> {
  // Not `kubectl wait`: it fails when the CRD has no status yet. And Established only says that the names are taken.
  await until("LockedCronJobs are served", 30_000, () =>
    cluster.kubectl(["get", "lockedcronjobs"]).then(
      () => true,
      () => false,
    ),
  );
}

export function clientOf(kubeconfig: string): KubeClient {
  return createKubeClient({
    config: () => {
      const config = new KubeConfig();
      config.loadFromString(kubeconfig);
      return config;
    },
    userAgent: "test-crd",
  });
}

/** A valid manifest, changed. */
export function manifest(change: (m: Manifest) => void = () => {}): Manifest {
  const m: Manifest = {
    metadata: { name: "report" },
    spec: {
      schedule: "*/5 * * * *",
      jobTemplate: {
        spec: {
          template: {
            spec: {
              restartPolicy: "Never",
              containers: [{ name: "main", image: "busybox:1.36" }],
            },
          },
        },
      },
    },
  };
  change(m);
  return m;
}

/** As the API server is sent it. */
export function objectOf(type: typeof lockedCronJobs, m: Manifest, namespace: string): Manifest {
  const { apiVersion, kind } = type;
  return { apiVersion, kind, ...m, metadata: { ...m.metadata, namespace } };
}

/**
 * What the API server found wrong, each `field: message`; nothing when the call was accepted.
 * @throws every error other than a refusal of what was sent
 */
export async function refusals(call: Promise<unknown>): Promise<string[]> {
  try {
    await call;
    return [];
  } catch (error) {
    if (!isKubeError(error) || (error.status !== 422 && error.status !== 400)) throw error;
    const causes = error.details?.causes ?? [];
    if (causes.length === 0) return [error.message];
    return (
      causes
        .map(({ field, message }) => `${field}: ${message}`)
        // Schema errors keep the CEL rules from being tried; the API server adds that as a finding of its own.
        .filter((refusal) => !refusal.includes("some validation rules were not checked"))
    );
  }
}

/** What the API server says about creating it (strict, dry run): nothing, or why not. */
export function refusalsOf(
  client: KubeClient,
  type: typeof lockedCronJobs,
  m: Manifest,
): Promise<string[]> {
  const object = objectOf(type, m, "default");
  return refusals(client.create(type, object, { dryRun: true, fieldValidation: "Strict" }));
}
