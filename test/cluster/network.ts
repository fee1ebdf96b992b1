import { existsSync } from "node:fs";
import { ClusterError } from "./errors.ts";
import type { Reservations } from "./reservations.ts";
import { run } from "./run.ts";

/**
 * The network of a cluster with real pods.
 *
 *     host ── lc<K> 10.200.K.254 ══ uplink ─┐
 *                                       │ bridge in a namespace of its own, so that the host's firewall has no say
 *     node i: eth0 10.200.K.i ══ n<i> ──┘ between nodes; `n<i>` down cuts the node off
 *     pods of node i: 10.(210+K).i.0/24, routed through the node
 *
 * K is reserved per cluster, so several live side by side. The host forwards nothing; its routes only let it reach pods.
 */
export const SUBNETS = 40;
export const MAX_NODES = 50;

export const hostAddress = (k: number): string => `10.200.${k}.254`;
export const nodeAddress = (k: number, node: number): string => `10.200.${k}.${node}`;
export const podRange = (k: number, node: number): string => `10.${210 + k}.${node}.0/24`;
export const clusterRange = (k: number): string => `10.${210 + k}.0.0/16`;

export const switchNetns = (k: number): string => `lc${k}-sw`;
export const nodeNetns = (k: number, node: number): string => `lc${k}-${node}`;
const hostLink = (k: number): string => `lc${k}`;
const port = (node: number): string => `n${node}`;

async function ip(...words: string[]): Promise<string> {
  return run("ip", words);
}

/** Several commands in one process, in a network namespace. */
async function batch(netns: string | undefined, lines: readonly string[]): Promise<void> {
  await run("ip", [...(netns ? ["-n", netns] : []), "-batch", "-"], {
    stdin: `${lines.join("\n")}\n`,
  });
}

interface Route {
  readonly dst?: string;
}

/** Reserves an address range (the K above) that no route, link or namespace of this machine touches. */
export async function reserveSubnet(
  reservations: Reservations,
  holder: string,
  nodes: number,
): Promise<{ subnet: number; host: { netns: string[] } }> {
  const routes = JSON.parse(await ip("-4", "-j", "route", "show", "table", "all")) as Route[];
  const used = routes.map(({ dst = "" }) => dst).filter((dst) => /^\d/.test(dst));
  const isFree = (k: number): boolean =>
    !existsSync(`/sys/class/net/${hostLink(k)}`) &&
    !existsSync(`/run/netns/${switchNetns(k)}`) &&
    !used.some((dst) => overlaps(dst, `10.200.${k}.0/24`) || overlaps(dst, clusterRange(k)));
  const all = Array.from({ length: SUBNETS }, (_, k) => k);
  const [subnet] = await reservations.take("subnet", holder, 1, all, isFree);
  if (subnet === undefined) {
    throw new ClusterError(
      "every address range that clusters use is taken: end one (make cluster-status lists them)",
    );
  }
  return {
    subnet,
    host: {
      netns: [switchNetns(subnet), ...nodeNumbers(nodes).map((node) => nodeNetns(subnet, node))],
    },
  };
}

export const nodeNumbers = (count: number): number[] =>
  Array.from({ length: count }, (_, index) => index + 1);

/** Whether two IPv4 ranges in CIDR notation (a bare address is a /32) share an address. */
export function overlaps(one: string, other: string): boolean {
  const [a, b] = [one, other].map((range) => {
    const [address = "", bits = "32"] = range.split("/");
    const value = address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);
    return { value, size: 2 ** (32 - Number(bits)) };
  }) as [{ value: number; size: number }, { value: number; size: number }];
  const size = Math.max(a.size, b.size);
  return Math.floor(a.value / size) === Math.floor(b.value / size);
}

/** Builds it from what was reserved. Everything hangs on the namespaces: with them, links and routes go. */
export async function buildNetwork(k: number, nodes: number): Promise<void> {
  const hub = switchNetns(k);
  const numbers = nodeNumbers(nodes);
  await batch(undefined, [
    `netns add ${hub}`,
    ...numbers.map((node) => `netns add ${nodeNetns(k, node)}`),
    `link add ${hostLink(k)} type veth peer name uplink netns ${hub}`,
    `addr add ${hostAddress(k)}/24 dev ${hostLink(k)}`,
    `link set ${hostLink(k)} up`,
    ...numbers.map(
      (node) =>
        `route add ${podRange(k, node)} via ${nodeAddress(k, node)} dev ${hostLink(k)} onlink`,
    ),
  ]);
  await batch(hub, [
    "link add name hub type bridge",
    "link set dev hub up",
    "link set dev uplink master hub up",
    ...numbers.flatMap((node) => [
      `link add ${port(node)} type veth peer name eth0 netns ${nodeNetns(k, node)}`,
      `link set dev ${port(node)} master hub up`,
    ]),
  ]);
  await Promise.all(numbers.map((node) => setUpNode(k, node, numbers)));
}

async function setUpNode(k: number, node: number, all: readonly number[]): Promise<void> {
  const netns = nodeNetns(k, node);
  await batch(netns, [
    "link set lo up",
    `addr add ${nodeAddress(k, node)}/24 dev eth0`,
    "link set eth0 up",
    `route add default via ${hostAddress(k)}`,
    ...all
      .filter((other) => other !== node)
      .map((other) => `route add ${podRange(k, other)} via ${nodeAddress(k, other)}`),
  ]);
  await run("nsenter", [
    `--net=/run/netns/${netns}`,
    "sh",
    "-c",
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
  ]);
}

/** Takes a node's cable out, or puts it back. */
export async function setCable(k: number, node: number, state: "up" | "down"): Promise<void> {
  await ip("-n", switchNetns(k), "link", "set", port(node), state);
}

/** Deletes the namespaces that are there. */
export async function deleteNamespaces(names: readonly string[]): Promise<void> {
  const there = names.filter((name) => existsSync(`/run/netns/${name}`));
  await Promise.all(there.map((name) => ip("netns", "del", name)));
}
