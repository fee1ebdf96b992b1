/** Command-line flags of a server without the dashes; null removes a default, a list repeats the flag. */
export type Flags = Readonly<
  Record<string, string | number | boolean | null | readonly (string | number)[]>
>;

export type Mode = "control-plane" | "nodes" | "simulated" | "kind" | "existing";

/** One server of a cluster. All methods resolve when the fact is so: stopped = gone, started = answering. */
export interface Component {
  readonly name: string;
  readonly logFile: string;
  /** Undefined while it does not run. */
  readonly pid: number | undefined;
  readonly flags: Flags;
  /** Starts it with its flags of before, changed by these; resolves when it is ready. */
  start(flags?: Flags): Promise<void>;
  /** SIGTERM, then waits until it is gone (the API server drains its requests first). Nothing when it does not run. */
  stop(): Promise<void>;
  /** SIGKILL, then waits until it is gone. */
  kill(): Promise<void>;
  restart(change?: { flags?: Flags; how?: "SIGTERM" | "SIGKILL" }): Promise<void>;
  /** SIGSTOP: it hangs, connections stay open. */
  pause(): void;
  resume(): void;
  /** Waits until it answers, for example after `resume`. */
  ready(): Promise<void>;
}

/** Whom a client certificate names. */
export interface User {
  readonly user: string;
  readonly groups?: readonly string[];
}

/** A kubeconfig with everything embedded: the file can be copied anywhere on this machine. */
export interface Kubeconfig {
  readonly path: string;
  readonly text: string;
}

export interface KubectlOptions {
  readonly stdin?: string;
  /** Kubeconfig to use instead of the admin's. */
  readonly kubeconfig?: string;
  readonly signal?: AbortSignal;
}

/** What every mode gives. */
export interface Cluster extends AsyncDisposable {
  readonly name: string;
  readonly mode: Mode;
  /** Folder with its state, logs and certificates. */
  readonly dir: string;
  /** URL of the API server. */
  readonly server: string;
  /** Kubeconfig of a cluster administrator (system:masters). */
  readonly kubeconfigPath: string;
  readonly adminKubeconfig: string;
  /** Folder with the binaries of this cluster (kubectl, ...), for PATH. */
  readonly binDir: string;
  readonly kubectlPath: string;
  /** Runs kubectl as the administrator and returns its standard output. Throws RunError. */
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<string>;
  /** Kubeconfig of a user with a client certificate of their own; what it may do is up to RBAC. */
  userKubeconfig(user: User): Promise<Kubeconfig>;
  /** Ends everything and removes the folder; a cluster that was only opened or given is left as it is. */
  stop(): Promise<void>;
}

/** A cluster whose control plane we run. */
export interface ControlPlaneCluster extends Cluster {
  readonly etcd: Component;
  readonly apiServer: Component;
  readonly controllerManager: Component;
  readonly scheduler: Component;
}

export interface ComponentFlags {
  readonly etcd?: Flags;
  readonly apiServer?: Flags;
  readonly controllerManager?: Flags;
  readonly scheduler?: Flags;
}

/** A node with real pods, in a network namespace of its own. */
export interface ClusterNode {
  readonly name: string;
  readonly address: string;
  /** Network namespace it runs in, as `ip netns` names it. */
  readonly netns: string;
  readonly containerd: Component;
  readonly kubelet: Component;
  readonly kubeProxy: Component;
  /** Takes its network cable out: a partition. What runs on it goes on. */
  cutOff(): Promise<void>;
  heal(): Promise<void>;
  /** Runs a command in its network; returns standard output. Throws RunError. */
  run(command: string, args: readonly string[]): Promise<string>;
  /** Imports an image archive (`docker save` or OCI layout). */
  loadImage(archive: string): Promise<void>;
  /** SIGKILL to the first process of a container, as its status names it (`containerd://...`). Gone already is fine. */
  killContainer(id: string): Promise<void>;
}

/** A cluster whose pods really run. */
export interface NodesCluster extends ControlPlaneCluster {
  readonly mode: "nodes";
  readonly nodes: readonly ClusterNode[];
  /** Imports an image archive on every node. Pods then need imagePullPolicy IfNotPresent or Never. */
  loadImage(archive: string): Promise<void>;
}

/** A cluster whose nodes and pods are played by kwok. */
export interface SimulatedCluster extends ControlPlaneCluster {
  readonly mode: "simulated";
  readonly kwok: Component;
}

/** A cluster in Docker containers, made by kind. */
export interface KindCluster extends Cluster {
  readonly mode: "kind";
  /** Imports an image archive on every node. */
  loadImage(archive: string): Promise<void>;
  /** SIGKILL to the first process of a container of that node, as its status names it. */
  killContainer(node: string, id: string): Promise<void>;
}

export interface StartOptions {
  /** Lower-case letters, digits and dashes, at most 20. Default: chosen. */
  readonly name?: string | undefined;
  /** Keeps running when the process that started it ends; `make cluster-down` ends it. Default: false. */
  readonly keep?: boolean | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

export interface ControlPlaneOptions extends StartOptions {
  readonly flags?: ComponentFlags | undefined;
}

export interface NodesOptions extends ControlPlaneOptions {
  /** How many, at most 50. Default: 1. */
  readonly nodes?: number | undefined;
  /** Fields of KubeletConfiguration to change. */
  readonly kubelet?: Readonly<Record<string, unknown>> | undefined;
}

export interface SimulatedOptions extends ControlPlaneOptions {
  /** How many, at most 1,000. Default: 3. */
  readonly nodes?: number | undefined;
}

export interface KindOptions extends StartOptions {
  /** Node image, which says the version of Kubernetes. Default: kind's own. */
  readonly image?: string | undefined;
  /** How many, at most 10, the first with the control plane. Default: 1. */
  readonly nodes?: number | undefined;
}

export interface ExistingOptions extends StartOptions {
  /** Kubeconfig whose current context to use. Default: the variable KUBECONFIG. */
  readonly kubeconfig?: string | undefined;
}

export interface OptionsOf {
  readonly "control-plane": ControlPlaneOptions;
  readonly nodes: NodesOptions;
  readonly simulated: SimulatedOptions;
  readonly kind: KindOptions;
  readonly existing: ExistingOptions;
}

export interface ClusterOf {
  readonly "control-plane": ControlPlaneCluster;
  readonly nodes: NodesCluster;
  readonly simulated: SimulatedCluster;
  readonly kind: KindCluster;
  readonly existing: Cluster;
}
