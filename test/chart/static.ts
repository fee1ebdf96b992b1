/**
 * deploy/install: the chart with its defaults for people without Helm, as `kubectl apply -k deploy/install`. Helm's hooks
 * are left out, and its labels; what stays is what `helm install` would create. The CRD is a file beside it (`make generate`).
 */
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";
import { ROOT } from "../../tools/ci/command.ts";
import { render, type Helm } from "./helm.ts";

export const STATIC_MANIFEST = join(ROOT, "deploy/install/lockedcron.yaml");
export const STATIC_CRD = join(ROOT, "deploy/install/lockedcronjobs.yaml");

const HEAD = `# Generated from charts/lockedcron by \`make manifests\`. Do not edit.
#   kubectl apply -k deploy/install
# Other settings: patches in a kustomization of yours, or the chart.
apiVersion: v1
kind: Namespace
metadata:
  name: lockedcron-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
`;
interface Manifest {
  metadata: { labels?: Record<string, string>; annotations?: Record<string, string> };
}

export async function staticManifest(helm: Helm): Promise<string> {
  const text = await render(helm, { crds: { install: false } }, ["--no-hooks"]);
  const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest | null);
  const kept = manifests.filter((manifest) => manifest !== null).map(withoutHelm);
  return [HEAD, ...kept.map((manifest) => stringify(manifest, { lineWidth: 0 }))].join("---\n");
}

function withoutHelm(manifest: Manifest): Manifest {
  const { labels = {}, annotations = {} } = manifest.metadata;
  const { "helm.sh/chart": _chart, ...others } = labels;
  // Means something to Helm alone.
  const { "helm.sh/resource-policy": _policy, ...notes } = annotations;
  const metadata = { ...manifest.metadata, annotations: notes };
  if (Object.keys(notes).length === 0) Reflect.deleteProperty(metadata, "annotations");
  if (Object.keys(others).length > 0) {
    metadata.labels = { ...others, "app.kubernetes.io/managed-by": "kubectl" };
  }
  return { ...manifest, metadata };
}
