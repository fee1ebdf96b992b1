import { join } from "node:path";
import { openCertificates } from "./certs.ts";
import type { Certificates, KeyPair } from "./certs.ts";
import { defineComponent, openComponent } from "./component.ts";
import type { ComponentSpec } from "./component.ts";
import { answersOk } from "./http.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { until } from "./proc.ts";
import type { Component, ComponentFlags, Flags } from "./types.ts";

/** The first address of the Service range is the API server's. */
export const SERVICE_RANGE = "10.96.0.0/16";
const API_SERVICE_ADDRESS = "10.96.0.1";
const LOOPBACK = "127.0.0.1";

/** Ports of a control plane, in the order of a cluster's record: etcd, etcd peer, API, manager, scheduler. */
export const CONTROL_PLANE_PORTS = 5;

type Binaries = Readonly<
  Record<"etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler", string>
>;

export interface ControlPlanePlace {
  readonly name: string;
  readonly dir: string;
  readonly ports: readonly number[];
  /** Address the API server listens on; pods reach it there, so with real pods it may not be loopback. */
  readonly address?: string;
}

export interface ControlPlane {
  readonly server: string;
  readonly certificates: Certificates;
  readonly admin: KeyPair;
  readonly adminKubeconfig: string;
  readonly etcd: Component;
  readonly apiServer: Component;
  readonly controllerManager: Component;
  readonly scheduler: Component;
}

interface Ends {
  readonly etcd: string;
  readonly etcdPeer: string;
  readonly api: string;
  readonly manager: string;
  readonly scheduler: string;
}

function endsOf({ ports, address = LOOPBACK }: ControlPlanePlace): Ends {
  const [etcd, etcdPeer, api, manager, scheduler] = ports;
  return {
    // Plain HTTP, as on loopback nobody but this machine can reach it.
    etcd: `http://${LOOPBACK}:${etcd}`,
    etcdPeer: `http://${LOOPBACK}:${etcdPeer}`,
    api: `https://${address}:${api}`,
    manager: `https://${LOOPBACK}:${manager}`,
    scheduler: `https://${LOOPBACK}:${scheduler}`,
  };
}

const portOf = (url: string): string => new URL(url).port;

const serving = (pair: KeyPair): Flags => ({
  "tls-cert-file": pair.certFile,
  "tls-private-key-file": pair.keyFile,
});

async function issueAll(certificates: Certificates, address: string) {
  const local = [LOOPBACK, "localhost"];
  const inCluster = ["", ".default", ".default.svc", ".default.svc.cluster.local"];
  const apiHosts = new Set([
    ...local,
    address,
    API_SERVICE_ADDRESS,
    ...inCluster.map((end) => `kubernetes${end}`),
  ]);
  const masters = ["system:masters"];
  const [apiServer, serviceAccounts, kubeletClient, manager, scheduler, admin] = await Promise.all([
    certificates.issue("apiserver", { user: "kube-apiserver", hosts: [...apiHosts] }),
    certificates.issue("service-accounts", { user: "service-accounts" }),
    certificates.issue("apiserver-kubelet-client", {
      user: "apiserver-kubelet-client",
      groups: masters,
    }),
    certificates.issue("controller-manager", {
      user: "system:kube-controller-manager",
      groups: masters,
      hosts: local,
    }),
    certificates.issue("scheduler", { user: "system:kube-scheduler", hosts: local }),
    certificates.issue("admin", { user: "admin", groups: masters }),
  ]);
  return { apiServer, serviceAccounts, kubeletClient, manager, scheduler, admin };
}

type Pairs = Awaited<ReturnType<typeof issueAll>>;

function etcdFlags(dir: string, ends: Ends): Flags {
  return {
    "data-dir": join(dir, "etcd"),
    "listen-client-urls": ends.etcd,
    "advertise-client-urls": ends.etcd,
    "listen-peer-urls": ends.etcdPeer,
    "initial-advertise-peer-urls": ends.etcdPeer,
    "initial-cluster": `default=${ends.etcdPeer}`,
    "log-level": "warn",
  };
}

function apiServerFlags(ends: Ends, pairs: Pairs, { caFile }: Certificates): Flags {
  const { hostname } = new URL(ends.api);
  return {
    "etcd-servers": ends.etcd,
    "bind-address": hostname,
    "secure-port": portOf(ends.api),
    ...serving(pairs.apiServer),
    "client-ca-file": caFile,
    "requestheader-client-ca-file": caFile,
    "requestheader-allowed-names": "front-proxy-client",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-username-headers": "X-Remote-User",
    "service-account-key-file": pairs.serviceAccounts.certFile,
    "service-account-signing-key-file": pairs.serviceAccounts.keyFile,
    "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
    "service-cluster-ip-range": SERVICE_RANGE,
    "authorization-mode": "Node,RBAC",
    "enable-admission-plugins": "NodeRestriction",
    "allow-privileged": true,
    "kubelet-client-certificate": pairs.kubeletClient.certFile,
    "kubelet-client-key": pairs.kubeletClient.keyFile,
    "kubelet-certificate-authority": caFile,
    "kubelet-preferred-address-types": "InternalIP",
    // Without pods nobody reaches the `kubernetes` Service, whose endpoint may not be a loopback address.
    "endpoint-reconciler-type": hostname === LOOPBACK ? "none" : null,
    // On SIGTERM it then ends open watches after 2 s, not 60 s, and answers 429 with Retry-After until then.
    "shutdown-send-retry-after": true,
    profiling: false,
  };
}

/** Flags shared by the two that are clients of the API server. One instance each: nobody to elect, no lease to wait for. */
function clientFlags(kubeconfig: string, end: string, pair: KeyPair): Flags {
  return {
    kubeconfig,
    "authentication-kubeconfig": kubeconfig,
    "authorization-kubeconfig": kubeconfig,
    "bind-address": LOOPBACK,
    "secure-port": portOf(end),
    ...serving(pair),
    "leader-elect": false,
  };
}

function managerFlags(pairs: Pairs, { caFile, caKeyFile }: Certificates): Flags {
  return {
    "service-account-private-key-file": pairs.serviceAccounts.keyFile,
    "root-ca-file": caFile,
    "cluster-signing-cert-file": caFile,
    "cluster-signing-key-file": caKeyFile,
    // As itself, an administrator: a token per controller, fetched at 20 requests/s, costs 5 s of every start.
    "use-service-account-credentials": false,
  };
}

/**
 * Lays down certificates, kubeconfigs and command lines. Nothing runs yet.
 * @param layers flags on top of the defaults, later ones win
 */
export async function defineControlPlane(
  place: ControlPlanePlace,
  binaries: Binaries,
  layers: readonly ComponentFlags[],
): Promise<void> {
  const { dir, name, address = LOOPBACK } = place;
  const ends = endsOf(place);
  const certificates = await openCertificates(join(dir, "pki"));
  const pairs = await issueAll(certificates, address);
  const kubeconfig = async (user: string, pair: KeyPair): Promise<string> => {
    const file = join(dir, `${user.replace("system:kube-", "")}.kubeconfig`);
    const parts = { cluster: name, server: ends.api, ca: certificates.ca, user, pair };
    return (await writeKubeconfig(file, parts)).path;
  };
  const [manager, scheduler] = await Promise.all([
    kubeconfig("system:kube-controller-manager", pairs.manager),
    kubeconfig("system:kube-scheduler", pairs.scheduler),
    kubeconfig("admin", pairs.admin),
  ]);
  const flagsOf = (key: keyof ComponentFlags, base: Flags): Flags =>
    Object.assign({}, base, ...layers.map((layer) => layer[key])) as Flags;
  const specs: ComponentSpec[] = [
    { name: "etcd", file: binaries.etcd, flags: flagsOf("etcd", etcdFlags(dir, ends)) },
    {
      name: "kube-apiserver",
      file: binaries["kube-apiserver"],
      flags: flagsOf("apiServer", apiServerFlags(ends, pairs, certificates)),
    },
    {
      name: "kube-controller-manager",
      file: binaries["kube-controller-manager"],
      flags: flagsOf("controllerManager", {
        ...clientFlags(manager, ends.manager, pairs.manager),
        ...managerFlags(pairs, certificates),
      }),
    },
    {
      name: "kube-scheduler",
      file: binaries["kube-scheduler"],
      flags: flagsOf("scheduler", clientFlags(scheduler, ends.scheduler, pairs.scheduler)),
    },
  ];
  await Promise.all(specs.map((spec) => defineComponent(dir, spec)));
}

/** Takes up the control plane that was defined in a folder, running or not. */
export async function openControlPlane(place: ControlPlanePlace): Promise<ControlPlane> {
  const { dir } = place;
  const ends = endsOf(place);
  const certificates = await openCertificates(join(dir, "pki"));
  const admin = await certificates.issue("admin", { user: "admin", groups: ["system:masters"] });
  const tls = { ca: certificates.ca, cert: admin.cert, key: admin.key };
  const open = (name: string, url: string): Component =>
    openComponent(dir, name, () => answersOk(url, tls));
  return {
    server: ends.api,
    certificates,
    admin,
    adminKubeconfig: join(dir, "admin.kubeconfig"),
    etcd: openComponent(dir, "etcd", () => etcdAnswers(`${ends.etcd}/health`)),
    apiServer: open("kube-apiserver", `${ends.api}/readyz`),
    controllerManager: open("kube-controller-manager", `${ends.manager}/healthz`),
    scheduler: open("kube-scheduler", `${ends.scheduler}/healthz`),
  };
}

async function etcdAnswers(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    (response) => response.ok,
    () => false,
  );
}

/** Starts all four and waits until pods can be created, which needs the service account of the default namespace. */
export async function startControlPlane(plane: ControlPlane): Promise<void> {
  await plane.etcd.start();
  await plane.apiServer.start();
  await Promise.all([plane.controllerManager.start(), plane.scheduler.start()]);
  const { admin, certificates, server } = plane;
  const url = `${server}/api/v1/namespaces/default/serviceaccounts/default`;
  await until("service account of the default namespace", 60_000, () =>
    answersOk(url, { ca: certificates.ca, cert: admin.cert, key: admin.key }),
  );
}
