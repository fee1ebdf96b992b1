/** The schema of the chart's values: whatever is not here is refused, but for `global`, which other charts share. */
type Schema = Readonly<Record<string, unknown>>;

const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: "object",
  additionalProperties: false,
  properties,
  ...more,
});
const text = (more: Schema = {}): Schema => ({ type: "string", ...more });
const flag: Schema = { type: "boolean" };
const whole = (minimum: number, maximum: number): Schema => ({ type: "integer", minimum, maximum });
const oneOf = (...values: readonly unknown[]): Schema => ({ enum: values });
const list = (items: Schema, more: Schema = {}): Schema => ({ type: "array", items, ...more });
/** Part of a Kubernetes object, which the API server judges. */
const anything: Schema = { type: "object" };
const words: Schema = { type: "object", additionalProperties: { type: "string" } };
const auto = oneOf("auto", true, false);
const name = text({ pattern: "^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$" });
const duration = text({ pattern: "^([0-9]+(ms|s|m|h))+$" });

const namespaceNames = list(text({ pattern: "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" }), {
  uniqueItems: true,
});

const image = object({
  registry: text({ pattern: "^[^/ ]*(/[^ ]*)?$" }),
  repository: text({ minLength: 1 }),
  tag: text({ pattern: "^[\\w.-]{0,128}$" }),
  digest: text({ pattern: "^(sha256:[0-9a-f]{64})?$" }),
  pullPolicy: oneOf("Always", "IfNotPresent", "Never"),
});

const resources = object({ requests: anything, limits: anything, claims: list(anything) });

const placement = {
  nodeSelector: words,
  tolerations: list(anything),
  affinity: anything,
  topologySpreadConstraints: list(anything),
  priorityClassName: text(),
};

const redis = object({
  enabled: flag,
  nodes: oneOf(3, 5),
  previousNodes: oneOf(0, 3, 5),
  image,
  auth: object({
    existingSecret: name,
    rotation: text({ pattern: "^[\\w.:-]{0,63}$" }),
    rotationStepSeconds: whole(10, 3_600),
  }),
  tls: object({ enabled: flag, existingSecret: name }),
  quarantineSeconds: whole(0, 3_700),
  maxmemory: text({ pattern: "^[0-9]+([kmg]b?)?$" }),
  resources,
  persistence: object({
    enabled: flag,
    size: text({ pattern: "^[0-9.]+([KMGTP]i?)?$" }),
    storageClass: text(),
  }),
  extraConfig: text(),
  podAnnotations: words,
  podLabels: words,
  ...placement,
  exporter: object({ enabled: flag, image, resources }),
});

const address = text({ pattern: "^rediss?://[^\\s,]+$" });

const externalRedis = object({
  nodes: list(address),
  previousNodes: list(address),
  configSecret: name,
  username: text({ pattern: "^\\S*$" }),
  existingSecret: name,
  passwordKey: text({ minLength: 1 }),
  tls: object({ existingSecret: name, caKey: text({ minLength: 1 }), clientCertificate: flag }),
});

export const valuesSchema: Schema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Values of the chart lockedcron",
  ...object({
    global: anything,
    nameOverride: name,
    fullnameOverride: name,
    commonLabels: words,
    commonAnnotations: words,
    replicas: whole(1, 20),
    image,
    imagePullSecrets: list({ anyOf: [text({ minLength: 1 }), object({ name: text() })] }),
    crds: object({ install: flag, keep: flag }),
    watchNamespaces: namespaceNames,
    clusterId: text({ pattern: "^([A-Za-z0-9]([\\w.-]{0,61}[A-Za-z0-9])?)?$" }),
    lock: object({
      backend: oneOf("redis", "kubernetes"),
      prefix: text({ pattern: "^[\\w.:-]{1,64}$" }),
      sharedMutexNamespaces: namespaceNames,
    }),
    log: object({ level: oneOf("error", "warn", "info", "debug"), format: oneOf("json", "text") }),
    extraArgs: list(text({ pattern: "^--" })),
    extraEnv: list(anything),
    extraEnvFrom: list(anything),
    extraVolumes: list(anything),
    extraVolumeMounts: list(anything),
    extraContainers: list(anything),
    extraInitContainers: list(anything),
    extraObjects: list(anything),
    serviceAccount: object({ create: flag, name, annotations: words }),
    rbac: object({ create: flag, aggregate: flag }),
    resources,
    heapPercent: whole(20, 90),
    terminationGracePeriodSeconds: whole(6, 3_600),
    podAnnotations: words,
    podLabels: words,
    podSecurityContext: anything,
    securityContext: anything,
    ...placement,
    podDisruptionBudget: object({
      enabled: flag,
      maxUnavailable: { anyOf: [whole(1, 20), text({ pattern: "^[1-9][0-9]?%$" })] },
    }),
    service: object({ enabled: flag, port: whole(1_024, 65_535), annotations: words }),
    monitoring: object({
      serviceMonitor: object({ enabled: auto, labels: words, interval: duration }),
      podMonitor: object({ enabled: auto, labels: words, interval: duration }),
      prometheusRule: object({ enabled: auto, labels: words }),
      dashboards: object({ enabled: flag, labels: words }),
    }),
    networkPolicy: object({ enabled: flag, metricsFrom: list(anything) }),
    uninstallHook: object({ enabled: flag }),
    redis,
    externalRedis,
  }),
};
