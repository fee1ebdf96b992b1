import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { killComponents, writeJson } from "./component.ts";
import { ClusterError, codeOf, UsageError } from "./errors.ts";
import { withFolderLock } from "./flock.ts";
import { clusterDir, clustersDir, ensureRunDir } from "./paths.ts";
import { reservePorts } from "./ports.ts";
import { isAlive, killAll, processesOf, self } from "./proc.ts";
import type { ProcessId } from "./proc.ts";
import { releaseHost } from "./release.ts";
import type { HostResources } from "./release.ts";
import { reserving } from "./reservations.ts";
import type { Reservations } from "./reservations.ts";
import type { Mode } from "./types.ts";

/** What is known of a cluster before anything of it runs, so that a crash at any later moment can be cleaned up. */
export interface ClusterRecord {
  readonly version: 1;
  readonly name: string;
  readonly mode: Mode;
  /** Whose end is the cluster's end; null: kept until `cluster-down`. */
  readonly owner: ProcessId | null;
  /** The process that watches over the owner. */
  readonly guardian?: ProcessId;
  readonly bootId: string;
  readonly createdAt: string;
  readonly ports: readonly number[];
  /** Which of the address ranges, for modes with a network of their own. */
  readonly subnet?: number;
  /** Things on the host outside the folder. Written down before they are made. */
  readonly host: HostResources;
  /** Whether start finished. */
  readonly ready: boolean;
  /** URL of the API server, once known. */
  readonly server?: string;
}

const NAME = /^[a-z]([-a-z0-9]{0,18}[a-z0-9])?$/;
const recordFile = (dir: string): string => join(dir, "cluster.json");
const bootId = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

export function checkName(name: string): string {
  if (NAME.test(name)) return name;
  throw new UsageError(
    `--name ${name}: must be 1 to 20 lower-case letters, digits or dashes, beginning with a letter and not ending with a dash`,
  );
}

export async function saveRecord(record: ClusterRecord): Promise<void> {
  await writeJson(recordFile(clusterDir(record.name)), record);
}

/** Undefined when there is no cluster of that name. */
export async function loadRecord(name: string): Promise<ClusterRecord | undefined> {
  try {
    return JSON.parse(await readFile(recordFile(clusterDir(name)), "utf8")) as ClusterRecord;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

export async function listRecords(): Promise<ClusterRecord[]> {
  const names = await readdir(clustersDir()).catch(() => []);
  const records = await Promise.all(names.filter((name) => NAME.test(name)).map(loadRecord));
  return records.filter((record) => record !== undefined);
}

export interface Claim {
  readonly name: string | undefined;
  readonly mode: Mode;
  readonly portCount: number;
  /** Reserves what else the cluster in `dir` needs of the host. */
  readonly reserve?: (reservations: Reservations, dir: string) => Promise<Reserved>;
}

export type Reserved = Pick<ClusterRecord, "subnet" | "host">;

/** Lays the folder of a new cluster and reserves its name, ports and address range against every other run. */
export async function claim({ name, mode, portCount, reserve }: Claim): Promise<ClusterRecord> {
  await ensureRunDir();
  const chosen = name === undefined ? `c${randomBytes(3).toString("hex")}` : checkName(name);
  return reserving(async (reservations) => {
    if (await loadRecord(chosen)) {
      throw new ClusterError(
        `cluster ${chosen} exists already: choose another name, or end it with make cluster-down NAME=${chosen}`,
      );
    }
    const dir = clusterDir(chosen);
    const record: ClusterRecord = {
      version: 1,
      name: chosen,
      mode,
      owner: self(),
      bootId: bootId(),
      createdAt: new Date().toISOString(),
      ports: await reservePorts(reservations, dir, portCount),
      host: {},
      ready: false,
      ...(await reserve?.(reservations, dir)),
    };
    // The folder appears with its record inside, or not at all.
    const half = join(clustersDir(), `.${chosen}.${process.pid}`);
    await mkdir(half, { recursive: true, mode: 0o700 });
    await writeJson(recordFile(half), record);
    await rename(half, dir);
    return record;
  });
}

/** Ends every process of a cluster, gives back what it holds of the host and deletes its folder. Can be repeated. */
export async function removeCluster(name: string): Promise<void> {
  const dir = clusterDir(name);
  await withFolderLock(dir, async () => {
    const record = await loadRecord(name);
    if (!record) return;
    const components = await readdir(join(dir, "components")).catch(() => []);
    await killComponents(
      dir,
      components.map((file) => file.replace(/\.json$/, "")),
    );
    // Again until none is left: a process may start another one while it is being killed.
    for (let left = processesOf(dir); left.length > 0; left = processesOf(dir)) await killAll(left);
    await releaseHost(dir, record.host);
    await rm(dir, { recursive: true, force: true });
    await reserving((reservations) => reservations.prune());
  });
}

function isOrphan(record: ClusterRecord): boolean {
  if (record.bootId !== bootId()) return true;
  return record.owner !== null && !isAlive(record.owner);
}

/** Removes the clusters whose owner died without doing so. */
export async function reap(log: (line: string) => void): Promise<void> {
  await ensureRunDir();
  for (const record of await listRecords()) {
    if (!isOrphan(record)) continue;
    log(`removing cluster ${record.name}, left behind by a run that crashed`);
    await removeCluster(record.name);
  }
}
