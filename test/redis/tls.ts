import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A self-signed certificate for one host, good as its own CA. */
export interface TestCertificate {
  readonly ca: string;
  /** redis.conf directives that switch TLS on, on this port, beside the plain one. */
  serverArgs(tlsPort: number): string[];
  remove(): void;
}

export function makeCertificate(host: string): TestCertificate {
  const dir = mkdtempSync(join(tmpdir(), "lockedcron-tls-"));
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const san = /^[\d.]+$/.test(host) ? `IP:${host}` : `DNS:${host}`;
  execFileSync(
    "openssl",
    [
      ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(" "),
      "-keyout",
      key,
      "-out",
      cert,
      "-subj",
      `/CN=${host}`,
      "-addext",
      `subjectAltName=${san}`,
    ],
    { stdio: "ignore" },
  );
  return {
    ca: readFileSync(cert, "utf8"),
    serverArgs: (tlsPort) => [
      "--tls-port",
      String(tlsPort),
      "--tls-cert-file",
      cert,
      "--tls-key-file",
      key,
      "--tls-ca-cert-file",
      cert,
      "--tls-auth-clients",
      "no",
    ],
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
