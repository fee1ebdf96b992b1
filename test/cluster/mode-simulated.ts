import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineComponent, openComponent } from "./component.ts";
import {
  CONTROL_PLANE_PORTS,
  defineControlPlane,
  openControlPlane,
  startControlPlane,
} from "./control-plane.ts";
import { UsageError } from "./errors.ts";
import {
  launch,
  leaveRunning,
  linkBinaries,
  placeOf,
  silent,
  toControlPlaneCluster,
} from "./lifecycle.ts";
import { clusterDir } from "./paths.ts";
import { simulatedNodes, simulationConfig } from "./simulation.ts";
import type { ClusterRecord } from "./state.ts";
import { CONTROL_PLANE_TOOLS, ensureTools } from "./tools.ts";
import type { Component, SimulatedCluster, SimulatedOptions } from "./types.ts";

const MAX_NODES = 1_000;
const KWOK = "kwok";

function openKwok(record: ClusterRecord): Component {
  const port = record.ports.at(-1);
  return openComponent(clusterDir(record.name), KWOK, () =>
    fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2_000) }).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
}

async function defineKwok(record: ClusterRecord, file: string, kubeconfig: string): Promise<void> {
  const dir = clusterDir(record.name);
  const config = join(dir, "kwok.yaml");
  await writeFile(config, simulationConfig());
  await defineComponent(dir, {
    name: KWOK,
    file,
    flags: {
      kubeconfig,
      config,
      "manage-all-nodes": true,
      "server-address": `127.0.0.1:${record.ports.at(-1)}`,
    },
    // Its default configuration is looked for, and made, in the home folder.
    env: { KWOK_WORKDIR: join(dir, "kwok") },
  });
}

/** A control plane with nodes and pods that kwok plays: Jobs run and end, nothing is executed. No root. */
export async function startSimulatedMode(options: SimulatedOptions): Promise<SimulatedCluster> {
  const { log = silent, flags = {}, nodes = 3 } = options;
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES) {
    throw new UsageError(`--nodes ${nodes}: must be a whole number from 1 to ${MAX_NODES}`);
  }
  const binaries = await ensureTools([...CONTROL_PLANE_TOOLS, KWOK], log);
  const wanted = { mode: "simulated", portCount: CONTROL_PLANE_PORTS + 1 } as const;
  return launch(options, wanted, async (record, stop) => {
    const place = placeOf(record);
    await linkBinaries(place.dir, Object.values(binaries));
    await defineControlPlane(place, binaries, [flags]);
    const plane = await openControlPlane(place);
    await defineKwok(record, binaries.kwok, plane.adminKubeconfig);
    await startControlPlane(plane);
    const kwok = openKwok(record);
    await kwok.start();
    const cluster = await toControlPlaneCluster(record, wanted.mode, plane, stop);
    await cluster.kubectl(["apply", "-f", "-"], { stdin: simulatedNodes(nodes) });
    await cluster.kubectl(["wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"]);
    return { ...cluster, kwok };
  });
}

export async function openSimulatedMode(record: ClusterRecord): Promise<SimulatedCluster> {
  const plane = await openControlPlane(placeOf(record));
  const cluster = await toControlPlaneCluster(record, "simulated", plane, leaveRunning);
  return { ...cluster, kwok: openKwok(record) };
}
