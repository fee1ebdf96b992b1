import { writeFile } from "node:fs/promises";
import { stringify } from "yaml";
import type { KeyPair } from "./certs.ts";
import type { Kubeconfig } from "./types.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Writes a kubeconfig with the credentials embedded, readable by its owner only. */
export async function writeKubeconfig(
  path: string,
  {
    cluster,
    server,
    ca,
    user,
    ...as
  }: {
    cluster: string;
    server: string;
    ca: string;
    user: string;
  } & ({ pair: Pick<KeyPair, "cert" | "key"> } | { token: string }),
): Promise<Kubeconfig> {
  const text = stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: cluster, cluster: { server, "certificate-authority-data": base64(ca) } }],
    users: [
      {
        name: user,
        user:
          "token" in as
            ? { token: as.token }
            : {
                "client-certificate-data": base64(as.pair.cert),
                "client-key-data": base64(as.pair.key),
              },
      },
    ],
    contexts: [{ name: cluster, context: { cluster, user } }],
    "current-context": cluster,
  });
  await writeFile(path, text, { mode: 0o600 });
  return { path, text };
}
