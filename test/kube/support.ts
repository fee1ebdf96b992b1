import { KubeConfig } from "@kubernetes/client-node";

import { createKubeClient } from "../../src/kube/client.ts";
import { isKubeError, type KubeError } from "../../src/kube/errors.ts";
import { type KubeObject, resourceType } from "../../src/kube/resources.ts";
import type { KubeClient, KubeClientOptions } from "../../src/kube/verbs.ts";

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

export const configMaps = resourceType<ConfigMap>("v1", "ConfigMap", "configmaps");

/** A client of a kubeconfig file; with `port`, through a proxy that listens there. */
export function clientOf(
  kubeconfigPath: string,
  options: Partial<KubeClientOptions> & { port?: number } = {},
): KubeClient {
  const { port, ...rest } = options;
  return createKubeClient({ config: () => kubeConfigOf(kubeconfigPath, port), ...rest });
}

export function kubeConfigOf(path: string, port?: number): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(path);
  if (port !== undefined) {
    config.clusters = config.clusters.map((cluster) => {
      const server = new URL(cluster.server);
      server.port = String(port);
      return { ...cluster, server: server.href };
    });
  }
  return config;
}

/** The KubeError of a call that must fail. */
export async function failureOf(call: Promise<unknown>): Promise<KubeError> {
  try {
    await call;
  } catch (error) {
    if (isKubeError(error)) return error;
    throw error;
  }
  throw new Error("the call succeeded");
}

/** A namespace of its own. */
export async function newNamespace(client: KubeClient, prefix: string): Promise<string> {
  const namespace = await client.raw({
    method: "POST",
    path: "/api/v1/namespaces",
    body: { apiVersion: "v1", kind: "Namespace", metadata: { generateName: `${prefix}-` } },
  });
  return (namespace as { metadata: { name: string } }).metadata.name;
}
