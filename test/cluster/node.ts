import { createConnection } from "node:net";
import { mkdir, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { defineComponent, openComponent } from "./component.ts";
import type { ControlPlane } from "./control-plane.ts";
import { answersOk } from "./http.ts";
import { PAUSE_IMAGE } from "./images.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { clusterRange, nodeAddress, nodeNetns, podRange, setCable } from "./network.ts";
import { run, RunError } from "./run.ts";
import type { ClusterNode } from "./types.ts";

/** Address of the cluster's DNS, the tenth of the Service range. */
export const DNS_ADDRESS = "10.96.0.10";

export interface NodePlace {
  readonly cluster: string;
  readonly dir: string;
  /** The cluster's address range. */
  readonly subnet: number;
  /** 1, 2, ... */
  readonly number: number;
}

export interface NodeBinaries {
  readonly containerd: string;
  readonly kubelet: string;
  readonly "kube-proxy": string;
  readonly cniDir: string;
}

export const nodeName = (number: number): string => `node-${number}`;
const nodeDir = ({ dir, number }: NodePlace): string => join(dir, "nodes", String(number));
const socketOf = (place: NodePlace): string => join(nodeDir(place), "containerd.sock");

const OVERLAYFS_MAGIC = 0x794c7630;

/** Overlays cannot be stacked on an overlay, as /tmp is inside a container; then layers are copied. */
async function snapshotter(dir: string): Promise<string> {
  return (await statfs(dir)).type === OVERLAYFS_MAGIC ? "native" : "overlayfs";
}

/** containerd's own configuration is TOML; JSON text is valid for the strings and lists in it. */
async function containerdConfig(place: NodePlace, cniDir: string): Promise<string> {
  const dir = nodeDir(place);
  const text = (value: unknown): string => JSON.stringify(value);
  const cri = `plugins."io.containerd.grpc.v1.cri"`;
  return `version = 2
root = ${text(join(dir, "lib"))}
state = ${text(join(dir, "run"))}
[grpc]
address = ${text(socketOf(place))}
[${cri}]
sandbox_image = ${text(PAUSE_IMAGE)}
# Containers may lack the capability to lower their own score; without this every sandbox fails there.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[${cri}.cni]
bin_dir = ${text(cniDir)}
conf_dir = ${text(join(dir, "cni"))}
[${cri}.containerd]
snapshotter = ${text(await snapshotter(dir))}
[${cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[${cri}.containerd.runtimes.runc.options]
Root = ${text(join(dir, "runc"))}
`;
}

/** ptp, not bridge: every packet between pods passes the node's routing, so Services work without br_netfilter. */
function cniConfig(place: NodePlace): unknown {
  return {
    cniVersion: "0.4.0",
    name: nodeNetns(place.subnet, place.number),
    plugins: [
      {
        type: "ptp",
        ipMasq: false,
        ipam: {
          type: "host-local",
          dataDir: join(nodeDir(place), "ipam"),
          ranges: [[{ subnet: podRange(place.subnet, place.number) }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  };
}

function kubeletConfig(
  place: NodePlace,
  plane: ControlPlane,
  pair: { certFile: string; keyFile: string },
): object {
  const dir = nodeDir(place);
  const never = "0%";
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: nodeAddress(place.subnet, place.number),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: plane.certificates.caFile },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: pair.certFile,
    tlsPrivateKeyFile: pair.keyFile,
    containerRuntimeEndpoint: `unix://${socketOf(place)}`,
    clusterDomain: "cluster.local",
    clusterDNS: [DNS_ADDRESS],
    resolvConf: join(dir, "resolv.conf"),
    // A folder per kubelet: on the shared default each deletes the logs of the other's pods.
    podLogsDir: join(dir, "logs"),
    volumePluginDir: join(dir, "volume-plugins"),
    // The machine is not a node's own: no cgroup tree of its own, no claim on all of its disk and memory.
    cgroupDriver: "cgroupfs",
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    evictionHard: Object.fromEntries(
      [
        "memory.available",
        "nodefs.available",
        "nodefs.inodesFree",
        "imagefs.available",
        "imagefs.inodesFree",
      ].map((signal) => [signal, never]),
    ),
    imageGCHighThresholdPercent: 100,
    serializeImagePulls: false,
  };
}

function kubeProxyConfig(place: NodePlace, kubeconfig: string): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig },
    hostnameOverride: nodeName(place.number),
    clusterCIDR: clusterRange(place.subnet),
    mode: "iptables",
    // These set limits of the whole machine.
    conntrack: { maxPerCore: 0, min: 0 },
  };
}

/** Lays down configurations and command lines of one node. Nothing runs yet. */
export async function defineNode(
  place: NodePlace,
  plane: ControlPlane,
  binaries: NodeBinaries,
  kubeletOverrides: Readonly<Record<string, unknown>>,
): Promise<void> {
  const dir = nodeDir(place);
  const name = nodeName(place.number);
  const address = nodeAddress(place.subnet, place.number);
  await mkdir(join(dir, "cni"), { recursive: true });
  const { certificates } = plane;
  const kubeconfig = async (file: string, user: string, groups: string[], hosts?: string[]) => {
    const pair = await certificates.issue(`${name}-${file}`, {
      user,
      groups,
      ...(hosts && { hosts }),
    });
    const parts = { cluster: place.cluster, server: plane.server, ca: certificates.ca, user, pair };
    await writeKubeconfig(join(dir, `${file}.kubeconfig`), parts);
    return pair;
  };
  const [kubelet] = await Promise.all([
    kubeconfig("kubelet", `system:node:${name}`, ["system:nodes"], [name, address]),
    kubeconfig("kube-proxy", "system:kube-proxy", []),
  ]);
  const put = (file: string, text: string): Promise<void> => writeFile(join(dir, file), text);
  await Promise.all([
    put("containerd.toml", await containerdConfig(place, binaries.cniDir)),
    put("cni/10-pods.conflist", JSON.stringify(cniConfig(place), null, 2)),
    put(
      "kubelet.yaml",
      stringify({ ...kubeletConfig(place, plane, kubelet), ...kubeletOverrides }),
    ),
    put("kube-proxy.yaml", stringify(kubeProxyConfig(place, join(dir, "kube-proxy.kubeconfig")))),
    put("resolv.conf", ""),
  ]);
  const netns = nodeNetns(place.subnet, place.number);
  await Promise.all([
    defineComponent(place.dir, {
      name: `${name}-containerd`,
      file: binaries.containerd,
      flags: { config: join(dir, "containerd.toml") },
      netns,
    }),
    defineComponent(place.dir, {
      name: `${name}-kubelet`,
      file: binaries.kubelet,
      flags: {
        config: join(dir, "kubelet.yaml"),
        kubeconfig: join(dir, "kubelet.kubeconfig"),
        "root-dir": join(dir, "kubelet"),
        "cert-dir": join(dir, "pki"),
        "hostname-override": name,
        "node-ip": address,
      },
      netns,
    }),
    defineComponent(place.dir, {
      name: `${name}-kube-proxy`,
      file: binaries["kube-proxy"],
      flags: { config: join(dir, "kube-proxy.yaml") },
      netns,
    }),
  ]);
}

async function listens(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(socket);
    connection.once("error", () => resolve(false));
    connection.once("connect", () => {
      connection.destroy();
      resolve(true);
    });
  });
}

/** Takes up a node that was defined, running or not. */
export function openNode(place: NodePlace, plane: ControlPlane): ClusterNode {
  const name = nodeName(place.number);
  const address = nodeAddress(place.subnet, place.number);
  const netns = nodeNetns(place.subnet, place.number);
  const tls = { ca: plane.certificates.ca, cert: plane.admin.cert, key: plane.admin.key };
  const { dir } = place;
  return {
    name,
    address,
    netns,
    containerd: openComponent(dir, `${name}-containerd`, () => listens(socketOf(place))),
    kubelet: openComponent(dir, `${name}-kubelet`, () =>
      answersOk(`https://${address}:10250/healthz`, tls),
    ),
    kubeProxy: openComponent(dir, `${name}-kube-proxy`, () =>
      fetch(`http://${address}:10256/livez`, { signal: AbortSignal.timeout(2_000) }).then(
        ({ ok }) => ok,
        () => false,
      ),
    ),
    cutOff: () => setCable(place.subnet, place.number, "down"),
    heal: () => setCable(place.subnet, place.number, "up"),
    run: (command, args) => run("nsenter", [`--net=/run/netns/${netns}`, "--", command, ...args]),
    loadImage: async (archive) => void (await ctr(place, "images", "import", archive)),
    killContainer: async (id) => {
      const name = id.replace(/^containerd:\/\//, "");
      try {
        await ctr(place, "tasks", "kill", "--signal", "SIGKILL", name);
      } catch (error) {
        if (
          !(error instanceof RunError) ||
          !/not found|process already finished/.test(error.stderr)
        )
          throw error;
      }
    },
  };
}

function ctr(place: NodePlace, ...args: string[]): Promise<string> {
  return run("ctr", ["--address", socketOf(place), "--namespace", "k8s.io", ...args]);
}
