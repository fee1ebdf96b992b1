import { readdir } from "node:fs/promises";
import { join } from "node:path";
import {
  CONTROL_PLANE_PORTS,
  defineControlPlane,
  openControlPlane,
  startControlPlane,
} from "./control-plane.ts";
import type { ControlPlane } from "./control-plane.ts";
import { dnsManifest } from "./dns.ts";
import { ClusterError, UsageError } from "./errors.ts";
import { ensureNodeImages } from "./images.ts";
import {
  launch,
  leaveRunning,
  linkBinaries,
  placeOf,
  silent,
  toControlPlaneCluster,
} from "./lifecycle.ts";
import type { Stop } from "./lifecycle.ts";
import { buildNetwork, hostAddress, MAX_NODES, nodeNumbers, reserveSubnet } from "./network.ts";
import { defineNode, openNode } from "./node.ts";
import { ensureNodePrograms } from "./packages.ts";
import { clusterDir } from "./paths.ts";
import type { Reservations } from "./reservations.ts";
import type { ClusterRecord } from "./state.ts";
import { CONTROL_PLANE_TOOLS, ensureTools, NODE_TOOLS } from "./tools.ts";
import type { ClusterNode, NodesCluster, NodesOptions } from "./types.ts";

function checkHost(nodes: number): void {
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES) {
    throw new UsageError(`--nodes ${nodes}: must be a whole number from 1 to ${MAX_NODES}`);
  }
  if (process.getuid?.() !== 0) {
    throw new ClusterError(
      "mode nodes runs real pods and needs root (network namespaces, containerd): run it as root, or use --mode simulated, whose nodes and pods are simulated and need none",
    );
  }
}

function subnetOf(record: ClusterRecord): number {
  if (record.subnet === undefined)
    throw new ClusterError(`cluster ${record.name} has no address range`);
  return record.subnet;
}

function nodesOf(record: ClusterRecord, plane: ControlPlane, count: number): ClusterNode[] {
  const [cluster, dir, subnet] = [record.name, clusterDir(record.name), subnetOf(record)];
  return nodeNumbers(count).map((number) => openNode({ cluster, dir, subnet, number }, plane));
}

async function toNodesCluster(
  record: ClusterRecord,
  plane: ControlPlane,
  nodes: readonly ClusterNode[],
  stop: Stop,
): Promise<NodesCluster> {
  return {
    ...(await toControlPlaneCluster(record, "nodes", plane, stop)),
    nodes,
    loadImage: async (archive) => {
      await Promise.all(nodes.map((node) => node.loadImage(archive)));
    },
  };
}

/** N nodes on this host, each with containerd, kubelet and kube-proxy in a network namespace of its own. Needs root. */
export async function startNodesMode(options: NodesOptions): Promise<NodesCluster> {
  const { log = silent, flags = {}, nodes: count = 1, kubelet = {} } = options;
  checkHost(count);
  const programs = await ensureNodePrograms(log);
  const binaries = await ensureTools([...CONTROL_PLANE_TOOLS, ...NODE_TOOLS], log);
  const images = await ensureNodeImages({ busybox: programs.busybox, coredns: binaries.coredns });
  const wanted = {
    mode: "nodes",
    portCount: CONTROL_PLANE_PORTS,
    reserve: (reservations: Reservations, dir: string) => reserveSubnet(reservations, dir, count),
  } as const;
  return launch(options, wanted, async (record, stop) => {
    const subnet = subnetOf(record);
    const place = placeOf(record, hostAddress(subnet));
    await Promise.all([
      buildNetwork(subnet, count),
      linkBinaries(place.dir, Object.values(binaries)),
      defineControlPlane(place, binaries, [flags]),
    ]);
    const plane = await openControlPlane(place);
    await Promise.all(
      nodeNumbers(count).map((number) =>
        defineNode(
          { cluster: record.name, dir: place.dir, subnet, number },
          plane,
          { ...binaries, ...programs },
          kubelet,
        ),
      ),
    );
    const nodes = nodesOf(record, plane, count);
    await Promise.all([
      startControlPlane(plane),
      ...nodes.map((node) => startRuntime(node, images)),
    ]);
    const cluster = await toNodesCluster(record, plane, nodes, stop);
    await cluster.kubectl(["apply", "-f", "-"], { stdin: dnsManifest() });
    await Promise.all(nodes.flatMap((node) => [node.kubelet.start(), node.kubeProxy.start()]));
    await cluster.kubectl([
      "rollout",
      "status",
      "deployment/coredns",
      "-n",
      "kube-system",
      "--timeout=120s",
    ]);
    await cluster.kubectl(["wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"]);
    return cluster;
  });
}

async function startRuntime(node: ClusterNode, images: readonly string[]): Promise<void> {
  await node.containerd.start();
  for (const image of images) await node.loadImage(image);
}

export async function openNodesMode(record: ClusterRecord): Promise<NodesCluster> {
  const plane = await openControlPlane(placeOf(record, hostAddress(subnetOf(record))));
  const count = (await readdir(join(clusterDir(record.name), "nodes"))).length;
  return toNodesCluster(record, plane, nodesOf(record, plane, count), leaveRunning);
}
