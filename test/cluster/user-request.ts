import { createHash, randomBytes } from "node:crypto";

import { join } from "node:path";
import { requestCertificate } from "./certs.ts";
import { ClusterError } from "./errors.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import type { Cluster, Kubeconfig, User } from "./types.ts";

interface AdminView {
  readonly clusters: readonly [
    {
      readonly cluster: { readonly server: string; readonly "certificate-authority-data"?: string };
    },
  ];
}

/**
 * A client certificate from a cluster whose CA key we do not have: by a CertificateSigningRequest, approved as administrator
 * and deleted again.
 */
export async function requestUser(
  { name, dir, kubectl }: Pick<Cluster, "name" | "dir" | "kubectl">,
  who: User,
): Promise<Kubeconfig> {
  const hash = createHash("sha256").update(JSON.stringify(who)).digest("hex").slice(0, 12);
  const base = join(dir, `user-${hash}`);
  const { request, key } = await requestCertificate(base, who);
  const object = `lockedcron-test-${randomBytes(6).toString("hex")}`;
  const manifest = {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name: object },
    spec: {
      request: Buffer.from(request).toString("base64"),
      signerName: "kubernetes.io/kube-apiserver-client",
      usages: ["client auth"],
    },
  };
  const csr = `csr/${object}`;
  await kubectl(["create", "-f", "-"], { stdin: JSON.stringify(manifest) });
  let cert: string;
  try {
    await kubectl(["certificate", "approve", object]);
    const signed = ["wait", csr, "--for=jsonpath={.status.certificate}", "--timeout=30s"];
    await kubectl(signed);
    const encoded = await kubectl(["get", csr, "-o", "jsonpath={.status.certificate}"]);
    cert = Buffer.from(encoded, "base64").toString();
  } finally {
    await kubectl(["delete", csr, "--ignore-not-found"]);
  }
  const view = await kubectl(["config", "view", "--raw", "--minify", "--flatten", "-o", "json"]);
  const { cluster } = (JSON.parse(view) as AdminView).clusters[0];
  const ca = cluster["certificate-authority-data"];
  if (!ca) throw new ClusterError(`the kubeconfig of ${name} holds no certificate authority`);
  return writeKubeconfig(`${base}.kubeconfig`, {
    cluster: name,
    server: cluster.server,
    ca: Buffer.from(ca, "base64").toString(),
    user: who.user,
    pair: { cert, key },
  });
}

/** URL of the API server in a kubeconfig's current context. */
export async function serverOf(kubectl: Cluster["kubectl"]): Promise<string> {
  const server = "jsonpath={.clusters[0].cluster.server}";
  return kubectl(["config", "view", "--minify", "-o", server]);
}
