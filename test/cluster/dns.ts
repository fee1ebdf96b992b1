import { COREDNS_IMAGE } from "./images.ts";
import { DNS_ADDRESS } from "./node.ts";

const labels = { "k8s-app": "kube-dns" };
const metadata = { name: "coredns", namespace: "kube-system", labels };

/** Names of Services and pods; nothing outside is resolved, so a test cannot reach out by chance. */
const COREFILE = `.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa {
        pods insecure
        ttl 5
    }
    cache 5
}
`;

/** CoreDNS as an ordinary Deployment behind the Service `kube-dns`, as a manifest for `kubectl apply`. */
export function dnsManifest(): string {
  const rule = (apiGroups: string[], resources: string[]) => ({
    apiGroups,
    resources,
    verbs: ["list", "watch"],
  });
  const role = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "coredns" };
  const items = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "coredns" },
      rules: [
        rule([""], ["endpoints", "services", "pods", "namespaces"]),
        rule(["discovery.k8s.io"], ["endpointslices"]),
      ],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "coredns" },
      roleRef: role,
      subjects: [{ kind: "ServiceAccount", name: "coredns", namespace: "kube-system" }],
    },
    { apiVersion: "v1", kind: "ConfigMap", metadata, data: { Corefile: COREFILE } },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { ...metadata, name: "kube-dns" },
      spec: {
        clusterIP: DNS_ADDRESS,
        selector: labels,
        ports: ["UDP", "TCP"].map((protocol) => ({
          name: `dns-${protocol.toLowerCase()}`,
          port: 53,
          protocol,
        })),
      },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podSpec() },
      },
    },
  ];
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

function podSpec(): object {
  return {
    serviceAccountName: "coredns",
    priorityClassName: "system-cluster-critical",
    tolerations: [{ operator: "Exists" }],
    containers: [
      {
        name: "coredns",
        image: COREDNS_IMAGE,
        imagePullPolicy: "Never",
        args: ["-conf", "/etc/coredns/Corefile"],
        readinessProbe: { httpGet: { path: "/ready", port: 8181 }, periodSeconds: 1 },
        securityContext: {
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
          readOnlyRootFilesystem: true,
        },
        volumeMounts: [{ name: "config", mountPath: "/etc/coredns", readOnly: true }],
      },
    ],
    dnsPolicy: "Default",
    securityContext: { sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "53" }] },
    volumes: [{ name: "config", configMap: { name: "coredns" } }],
  };
}
