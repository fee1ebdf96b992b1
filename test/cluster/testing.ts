import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll } from "vitest";
import { identify } from "./proc.ts";
import type { ProcessId } from "./proc.ts";
import { listRecords, removeCluster } from "./state.ts";

/** Gives this test file a run folder of its own: what it crashes and reaps is only its own, and so is what it counts. */
export function useOwnRunDir(): void {
  const before = process.env["LOCKEDCRON_RUN"];
  let home: string;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), "lc-"));
    process.env["LOCKEDCRON_RUN"] = home;
  });
  afterAll(async () => {
    // What a failed test left.
    for (const { name } of await listRecords()) await removeCluster(name);
    if (before === undefined) delete process.env["LOCKEDCRON_RUN"];
    else process.env["LOCKEDCRON_RUN"] = before;
    await rm(home, { recursive: true, force: true });
  });
}

export function mustIdentify(pid: number | undefined): ProcessId {
  const id = identify(pid ?? 0);
  if (!id) throw new Error(`no process ${pid}`);
  return id;
}

/** Starts a cluster in a process of its own, which then only waits to be killed. */
export async function startElsewhere(options: object): Promise<{ owner: ProcessId; name: string }> {
  const program = `
    import { startCluster } from ${JSON.stringify(join(import.meta.dirname, "cluster.ts"))};
    const cluster = await startCluster(${JSON.stringify(options)});
    console.log(cluster.name);
    setInterval(() => {}, 60_000);
  `;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [name] = (await once(createInterface(child.stdout), "line")) as [string];
  return { owner: mustIdentify(child.pid), name };
}
