import {
  CONTROL_PLANE_PORTS,
  defineControlPlane,
  openControlPlane,
  startControlPlane,
} from "./control-plane.ts";
import {
  launch,
  leaveRunning,
  linkBinaries,
  placeOf,
  silent,
  toControlPlaneCluster,
} from "./lifecycle.ts";
import type { ClusterRecord } from "./state.ts";
import { CONTROL_PLANE_TOOLS, ensureTools } from "./tools.ts";
import type { ControlPlaneCluster, ControlPlaneOptions } from "./types.ts";

/** etcd, API server, controller manager and scheduler on loopback. No root, no pods: Jobs get Pods that stay pending. */
export async function startControlPlaneMode(
  options: ControlPlaneOptions,
): Promise<ControlPlaneCluster> {
  const { log = silent, flags = {} } = options;
  const binaries = await ensureTools(CONTROL_PLANE_TOOLS, log);
  const wanted = { mode: "control-plane", portCount: CONTROL_PLANE_PORTS } as const;
  return launch(options, wanted, async (record, stop) => {
    const place = placeOf(record);
    await linkBinaries(place.dir, Object.values(binaries));
    await defineControlPlane(place, binaries, [flags]);
    const plane = await openControlPlane(place);
    await startControlPlane(plane);
    return toControlPlaneCluster(record, wanted.mode, plane, stop);
  });
}

export async function openControlPlaneMode(record: ClusterRecord): Promise<ControlPlaneCluster> {
  const plane = await openControlPlane(placeOf(record));
  return toControlPlaneCluster(record, "control-plane", plane, leaveRunning);
}
