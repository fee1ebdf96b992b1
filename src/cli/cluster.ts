/** What commands that talk to a cluster share: their flags, the client, errors as one line. */
import { API_VERSION, KIND, PLURAL } from "../api/names.ts";
import type { LockedCronJob } from "../api/types.ts";
import {
  createKubeClient,
  hasReason,
  loadKubeConfig,
  resourceType,
  type KubeClient,
} from "../kube/index.ts";
import type { ExitCode, Io } from "./command.ts";
import type { Flags, FlagSpec } from "./flags.ts";

export const lockedCronJobs = resourceType<LockedCronJob>(API_VERSION, KIND, PLURAL);

export const CLUSTER_FLAGS: Readonly<Record<string, FlagSpec>> = {
  namespace: { type: "string", short: "n" },
  kubeconfig: { type: "string" },
  context: { type: "string" },
};

export const CLUSTER_USAGE = `  -n, --namespace NAME  default: that of the kubeconfig's context, else "default"
  --kubeconfig FILE     credentials (default: KUBECONFIG, ~/.kube/config, the service account of the pod)
  --context NAME        context of the kubeconfig (default: its current one)
  -h, --help            this text
`;

export interface Cluster {
  client: KubeClient;
  namespace: string;
}

/** Runs with a client; whatever goes wrong is one line and exit code 1. */
export async function withCluster(
  io: Io,
  command: string,
  { values }: Pick<Flags, "values">,
  work: (cluster: Cluster) => Promise<ExitCode>,
): Promise<ExitCode> {
  const text = (name: string): string | undefined =>
    typeof values[name] === "string" ? values[name] : undefined;
  const load = () => loadKubeConfig({ file: text("kubeconfig"), context: text("context") });
  try {
    const config = load();
    const current = config.getContextObject(config.getCurrentContext());
    await using client = createKubeClient({ config: load, userAgent: "lockedcron-cli" });
    return await work({
      client,
      namespace: text("namespace") ?? current?.namespace ?? "default",
    });
  } catch (error) {
    const hint = hasReason(error, "NotFound") && missesCrd(error) ? MISSING_CRD : "";
    io.error(
      `lockedcron ${command}: ${error instanceof Error ? error.message : String(error)}${hint}\n`,
    );
    return 1;
  }
}

const MISSING_CRD = " (is the CRD of LockedCronJob installed?)";

/** The API server says so of a path that it does not serve, and not of an object. */
function missesCrd(error: unknown): boolean {
  return error instanceof Error && error.message.includes("could not find the requested resource");
}

/** Columns as kubectl has them: as wide as needed, three blanks between. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths =
    rows[0]?.map((_, i) => Math.max(...rows.map((row) => (row[i] ?? "").length))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("   ")
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join("");
}

/** `5s`, `12m`, `3h`, `4d`: the age of an instant as kubectl shows it; "-" for none. */
export function ago(instant: string | undefined, now: number): string {
  const at = Date.parse(instant ?? "");
  if (Number.isNaN(at)) return "-";
  const span = duration(Math.abs(now - at));
  return at > now ? `in ${span}` : span;
}

function duration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

/** All schedules in one cell. */
export function scheduleText({ spec }: LockedCronJob): string {
  return spec.schedule ?? (spec.schedules ?? []).map((one) => one.schedule).join("; ");
}
