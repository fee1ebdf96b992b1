/** Helm 3 and Helm 4, on the project's chart. */
import { join } from "node:path";
import { ROOT } from "../../tools/ci/command.ts";
import { ensureTools } from "../cluster/tools.ts";
import { run } from "../cluster/run.ts";

export const CHART = join(ROOT, "charts/lockedcron");
export const HELMS = ["helm", "helm3"] as const;
export type HelmName = (typeof HELMS)[number];

export interface HelmOptions {
  readonly kubeconfig?: string;
  readonly stdin?: string;
  readonly signal?: AbortSignal;
}

/** Runs Helm; returns its standard output. @throws RunError */
export type Helm = (args: readonly string[], options?: HelmOptions) => Promise<string>;

export async function openHelm(name: HelmName = "helm"): Promise<Helm> {
  const { [name]: file } = await ensureTools([name], (line) => console.error(`[helm] ${line}`));
  return (args, { kubeconfig, stdin, signal } = {}) =>
    run(file, args, {
      stdin,
      signal,
      // Nothing of the machine's own Helm: no plug-ins, no registries. Without a cluster there is none to ask.
      env: {
        HELM_CONFIG_HOME: "/nonexistent",
        HELM_PLUGINS: "/nonexistent",
        KUBECONFIG: kubeconfig ?? "/nonexistent",
      },
    });
}

/** What a set of values renders to. `values` is YAML or JSON. */
export async function render(
  helm: Helm,
  values: unknown = {},
  more: readonly string[] = [],
): Promise<string> {
  const args = ["template", "lockedcron", CHART, "--namespace=lockedcron-system", "--values=-"];
  return helm([...args, ...more], { stdin: JSON.stringify(values) });
}
