import { ClusterError } from "./errors.ts";
import { openControlPlaneMode, startControlPlaneMode } from "./mode-control-plane.ts";
import { openExistingMode, openKindMode, startExistingMode, startKindMode } from "./mode-given.ts";
import { openNodesMode, startNodesMode } from "./mode-nodes.ts";
import { openSimulatedMode, startSimulatedMode } from "./mode-simulated.ts";
import { loadRecord } from "./state.ts";
import type { ClusterRecord } from "./state.ts";
import type { ClusterOf, Mode, OptionsOf } from "./types.ts";

export type * from "./types.ts";

interface Driver<M extends Mode> {
  start(options: OptionsOf[M]): Promise<ClusterOf[M]>;
  open(record: ClusterRecord): Promise<ClusterOf[M]>;
}

const DRIVERS: { readonly [M in Mode]: Driver<M> } = {
  "control-plane": { start: startControlPlaneMode, open: openControlPlaneMode },
  nodes: { start: startNodesMode, open: openNodesMode },
  simulated: { start: startSimulatedMode, open: openSimulatedMode },
  kind: { start: startKindMode, open: openKindMode },
  existing: { start: startExistingMode, open: openExistingMode },
};

/**
 * Starts a cluster of its own; it ends with `stop()`, with `await using`, or with this process, however that ends.
 * @throws ClusterError with a message for people when this machine lacks something
 */
export async function startCluster<M extends Mode>(
  options: { readonly mode: M } & OptionsOf[M],
): Promise<ClusterOf[M]> {
  return DRIVERS[options.mode].start(options);
}

/**
 * Takes up a cluster that another process started, as tests do with the shared one. Its `stop` leaves it running.
 * @param mode the mode it must have, which also tells what it can do
 */
export async function openCluster<M extends Mode = "control-plane">(
  name: string,
  mode = "control-plane" as M,
): Promise<ClusterOf[M]> {
  const record = await loadRecord(name);
  if (!record)
    throw new ClusterError(`no cluster ${name}: make cluster-status lists those there are`);
  if (record.mode !== mode)
    throw new ClusterError(`cluster ${name} is in mode ${record.mode}, not ${mode}`);
  return DRIVERS[mode].open(record);
}
