/** `lockedcron locks`: the locks of live runs: who holds each, how long it stays on each Redis node, who renews it. */
import {
  COMPONENT_LABEL,
  LEDGER_ANNOTATION,
  LEDGER_COMPONENT,
  MUTEX_COMPONENT,
  REPLICA_COMPONENT,
  keyOf,
  mutexLeaseName,
  nameOfLedger,
  splitKey,
} from "../api/names.ts";
import type { Lease } from "../api/types.ts";
import type { Config } from "../config.ts";
import { rankOf } from "../domain/election.ts";
import { parseLedger } from "../domain/ledger-json.ts";
import { isOver, type Run } from "../domain/ledger.ts";
import { holderOf, mutexLockKey } from "../domain/lock-terms.ts";
import { resourceType, type KubeClient } from "../kube/index.ts";
import type { Inspection, NodeVerdict, QuorumLock } from "../lock/index.ts";
import { openLock } from "../operator/locks.ts";
import type { ExitCode, Io } from "./command.ts";
import { asOperator } from "./operator.ts";

const USAGE = `Usage: lockedcron locks [settings of the operator]

One line for each lock of each live run: its key, the run, what Redis says of it, its remaining seconds on each node,
the replica that is to renew it, and for a mutex what its fence in the cluster says. The settings are the operator's, as
flags or variables: see its own --help.

Exit code: 0, 1 when the API server could not be asked, 2 for a wrong setting.
`;

const leases = resourceType<Lease>("coordination.k8s.io/v1", "Lease", "leases");
/** For the Redis nodes to answer, ms; those that do not are said to be down. */
const READY_MS = 3_000;

export const locks = asOperator("locks", USAGE, list);

/** One lock of one run. */
interface Held {
  key: string;
  run: Run;
  lockKey: string;
  /** `namespace/name`; undefined for the run's own lock. */
  mutex?: string;
}

async function list(config: Config, client: KubeClient, io: Io): Promise<ExitCode> {
  const namespaces: (string | undefined)[] =
    config.watchNamespaces.length === 0 ? [undefined] : [...config.watchNamespaces];
  const of = (labelSelector: string) => (namespace: string | undefined) =>
    client.list(leases, { namespace, labelSelector });
  const ours = `${COMPONENT_LABEL} in (${LEDGER_COMPONENT},${MUTEX_COMPONENT})`;
  const [found, replicas] = await Promise.all([
    Promise.all([...namespaces, ...foreign(config)].map(of(ours))),
    of(`${COMPONENT_LABEL}=${REPLICA_COMPONENT}`)(config.namespace),
  ]);
  const items = found.flatMap((page) => page.items);
  const held = items.flatMap(locksIn);
  const members = replicas.items.filter((lease) => isLive(lease, io.now())).map(nameOf);
  const lock = config.lockBackend === "kubernetes" ? undefined : openLock(config);
  try {
    await lock?.ready(READY_MS);
    const rows = await Promise.all(
      held.map(async (one) => {
        const inspection = await lock?.inspect(one.lockKey);
        return rowOf(one, inspection, lock, members, items);
      }),
    );
    const head = ["LOCK", "RUN", "REDIS", "REMAINING", "RENEWED BY", "FENCE"];
    await io.out(rows.length === 0 ? "No run is live.\n" : table([head, ...rows]));
    return 0;
  } finally {
    await lock?.close();
  }
}

/** Namespaces of shared mutexes that are not watched anyway. */
function foreign(config: Config): readonly string[] {
  if (config.watchNamespaces.length === 0) return [];
  return config.sharedMutexNamespaces.filter((name) => !config.watchNamespaces.includes(name));
}

function locksIn(lease: Lease): Held[] {
  const { name: leaseName, namespace, annotations } = lease.metadata;
  const name = nameOfLedger(leaseName);
  const parsed = parseLedger(annotations?.[LEDGER_ANNOTATION]);
  if (name === undefined || !parsed.ok) return [];
  const key = keyOf(namespace, name);
  return parsed.ledger.runs
    .filter((run) => !isOver(run) && run.lockKey !== "")
    .flatMap((run) => {
      const prefix = run.lockKey.slice(0, run.lockKey.lastIndexOf(`:${key}`));
      const mutexes = (run.lock?.mutexes ?? []).map((mutex) => ({
        key,
        run,
        mutex,
        lockKey: mutexLockKey(prefix, mutex),
      }));
      return [{ key, run, lockKey: run.lockKey }, ...mutexes];
    });
}

function isLive({ spec }: Lease, now: number): boolean {
  const renewed = Date.parse(spec?.renewTime ?? "");
  return renewed + (spec?.leaseDurationSeconds ?? 0) * 1000 > now;
}

function nameOf({ spec, metadata }: Lease): string {
  return (spec?.holderIdentity ?? metadata.name).split("/")[0] ?? metadata.name;
}

function rowOf(
  { key, run, lockKey, mutex }: Held,
  inspection: Inspection | undefined,
  lock: QuorumLock | undefined,
  members: readonly string[],
  items: readonly Lease[],
): string[] {
  const first = members.find((member) => rankOf(member, members, key) === 0);
  return [
    lockKey,
    run.runId,
    lock === undefined ? "not used" : redisSays(inspection, run),
    (inspection?.perNode ?? []).map((verdict) => remaining(verdict, run)).join(" "),
    run.jobUID === undefined ? "-" : (first ?? "nobody"),
    mutex === undefined ? "-" : fenceOf(mutex, items, holderOf(key, run.lockValue)),
  ];
}

function redisSays(inspection: Inspection | undefined, run: Run): string {
  const value = inspection?.holder?.value;
  if (value === undefined) return run.waiting === undefined ? "no majority" : "waits";
  return value === run.lockValue ? "held" : `held by ${value.split("#")[0]}`;
}

function remaining(verdict: NodeVerdict, run: Run): string {
  if (verdict.outcome !== "held") return `${verdict.node}=${verdict.outcome}`;
  const seconds = verdict.pttlMs < 0 ? "for ever" : `${(verdict.pttlMs / 1000).toFixed(1)}s`;
  return `${verdict.node}=${verdict.holder === run.lockValue ? "" : "other:"}${seconds}`;
}

function fenceOf(mutex: string, items: readonly Lease[], own: string): string {
  const { namespace, name } = splitKey(mutex);
  const fence = items.find(
    ({ metadata }) => metadata.namespace === namespace && metadata.name === mutexLeaseName(name),
  );
  const holder = fence?.spec?.holderIdentity ?? undefined;
  if (holder === undefined) return "free";
  const token = fence?.spec?.leaseTransitions ?? 0;
  return holder === own ? `held, token ${token}` : `held by ${holder.split("#")[0]}`;
}

function table(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return `${lines.join("\n")}\n`;
}
