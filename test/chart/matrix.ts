/** Values as people write them: each must render, be accepted by the API server and be admitted under `restricted`. */

const SHA = `sha256:${"0".repeat(64)}`;
const URLS = ["redis://a:6379", "redis://b:6379", "redis://c:6379"];

export const MATRIX: Readonly<Record<string, object>> = {
  defaults: {},
  "no Redis at all": { lock: { backend: "kubernetes" }, redis: { enabled: false } },
  "one replica, one Redis of one's own": {
    replicas: 1,
    redis: { enabled: false },
    externalRedis: { nodes: ["redis://redis:6379"] },
  },
  "Redis of one's own, with password and TLS": {
    redis: { enabled: false },
    externalRedis: {
      nodes: URLS.map((url) => url.replace("redis:", "rediss:")),
      username: "lockedcron",
      existingSecret: "redis",
      passwordKey: "word",
      tls: { existingSecret: "redis-tls", clientCertificate: true },
    },
  },
  "masters under Sentinel, listed in a Secret": {
    watchNamespaces: ["team-a"],
    clusterId: "prod-1",
    redis: { enabled: false },
    externalRedis: { configSecret: "redis-nodes" },
  },
  "two namespaces alone": { watchNamespaces: ["team-a", "team-b"] },
  "mutexes of another namespace": {
    watchNamespaces: ["team-a"],
    lock: { sharedMutexNamespaces: ["team-a", "team-b"] },
  },
  "from three nodes to five": { redis: { nodes: 5, previousNodes: 3 } },
  "two namespaces, Redis shared with other clusters": {
    watchNamespaces: ["team-a"],
    clusterId: "prod-1",
    redis: { enabled: false },
    externalRedis: { nodes: URLS },
  },
  "five nodes with TLS, volumes and exporter": {
    redis: {
      nodes: 5,
      tls: { enabled: true, existingSecret: "redis-tls" },
      persistence: { enabled: true, storageClass: "fast" },
      exporter: { enabled: true },
      auth: { rotation: "2026-11" },
      extraConfig: "timeout 0\nloglevel warning",
    },
  },
  "passwords of one's own": { redis: { auth: { existingSecret: "mine" } } },
  "another Redis": { redis: { image: { repository: "library/redis", tag: "8.2-alpine" } } },
  "air gap": {
    global: { imageRegistry: "registry.example.com/mirror", imagePullSecrets: ["a"] },
    imagePullSecrets: [{ name: "b" }],
    image: { digest: SHA },
    redis: { image: { registry: "other.example.com", digest: SHA } },
  },
  "OpenShift picks the user": {
    podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null },
  },
  "everything that can be added": {
    commonLabels: { team: "platform" },
    commonAnnotations: { contact: "platform@example.com" },
    extraArgs: ["--workers=64"],
    extraEnv: [{ name: "HTTPS_PROXY", value: "http://proxy:3128" }],
    extraEnvFrom: [{ configMapRef: { name: "more", optional: true } }],
    extraVolumes: [{ name: "more", emptyDir: {} }],
    extraVolumeMounts: [{ name: "more", mountPath: "/more" }],
    extraObjects: [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "more", namespace: "{{ .Release.Namespace }}" },
      },
    ],
    podAnnotations: { a: "b" },
    podLabels: { c: "d" },
    nodeSelector: { "kubernetes.io/os": "linux" },
    tolerations: [{ operator: "Exists" }],
    affinity: { nodeAffinity: {} },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "kubernetes.io/hostname",
        whenUnsatisfiable: "DoNotSchedule",
        labelSelector: { matchLabels: { a: "b" } },
      },
    ],
    priorityClassName: "system-cluster-critical",
    networkPolicy: { enabled: true, metricsFrom: [{ namespaceSelector: {} }] },
    monitoring: { dashboards: { enabled: true } },
    serviceAccount: { annotations: { role: "x" } },
    service: { annotations: { e: "f" }, port: 9090 },
  },
  "as little as possible": {
    replicas: 1,
    crds: { install: false },
    service: { enabled: false },
    podDisruptionBudget: { enabled: false },
    uninstallHook: { enabled: false },
    rbac: { create: false, aggregate: false },
    serviceAccount: { create: false, name: "there-already" },
    lock: { backend: "kubernetes" },
    redis: { enabled: false },
    resources: {},
  },
};

/** Refused, with what the message must say. */
export const REFUSED: readonly [what: string, values: object, says: RegExp][] = [
  ["an even number of nodes", { redis: { nodes: 4 } }, /redis\/nodes.*3, 5|redis\.nodes/s],
  ["no replica", { replicas: 0 }, /replicas/],
  ["a number in words", { replicas: "three" }, /replicas.*integer/s],
  ["a value that is misspelt", { replica: 3 }, /replica\b/],
  ["one below another", { redis: { image: { tga: "9" } } }, /tga/],
  ["another word for on", { redis: { enabled: "yes" } }, /redis.*enabled.*boolean/s],
  ["a backend that is none", { lock: { backend: "etcd" } }, /backend.*redis.*kubernetes/s],
  ["an address without its scheme", { externalRedis: { nodes: ["redis:6379"] } }, /externalRedis/],
  ["a flag that is none", { extraArgs: ["workers=64"] }, /extraArgs/],
  [
    "both kinds of Redis",
    { externalRedis: { nodes: URLS } },
    /write redis\.enabled: false, for those of the chart empty externalRedis\.nodes/,
  ],
  [
    "two lists of nodes",
    { redis: { enabled: false }, externalRedis: { nodes: URLS, configSecret: "a" } },
    /leave one of them empty/,
  ],
  [
    "a list beside the chart's own Redis",
    { externalRedis: { configSecret: "a" } },
    /for those of the chart empty externalRedis\.configSecret/,
  ],
  ["no kind of Redis", { redis: { enabled: false } }, /redis\.enabled: true, or the addresses/],
  ["Redis that nobody uses", { lock: { backend: "kubernetes" } }, /write redis\.enabled: false/],
  [
    "two nodes",
    { redis: { enabled: false }, externalRedis: { nodes: URLS.slice(0, 2) } },
    /two nodes survive no failure/,
  ],
  [
    "one node twice",
    { redis: { enabled: false }, externalRedis: { nodes: [...URLS, URLS[0]] } },
    /more than once/,
  ],
  ["a change that is none", { redis: { previousNodes: 3 } }, /write the number before the change/],
  ["TLS without a certificate", { redis: { tls: { enabled: true } } }, /existingSecret: a Secret/],
  [
    "shared Redis without a name for the cluster",
    { watchNamespaces: ["a"], redis: { enabled: false }, externalRedis: { nodes: URLS } },
    /clusterId is needed/,
  ],
  [
    "a ServiceMonitor of no Service",
    { service: { enabled: false }, monitoring: { serviceMonitor: { enabled: true } } },
    /needs service\.enabled: true/,
  ],
];
