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

/** @param days that it is valid from now; -1: it expired yesterday */
export function makeCertificate(host: string, days = 2): TestCertificate {
  const dir = mkdtempSync(join(tmpdir(), "lockedcron-tls-"));
  const file = (name: string) => join(dir, `${name}.pem`);
  const [cert, key, request] = [file("cert"), file("key"), file("request")];
  const san = /^[\d.]+$/.test(host) ? `IP:${host}` : `DNS:${host}`;
  const openssl = (args: readonly string[]) => execFileSync("openssl", args, { stdio: "ignore" });
  const words = (text: string) => text.split(" ");
  openssl([
    ...words("req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"),
    ...words(`-keyout ${key} -out ${request} -subj /CN=${host} -addext subjectAltName=${san}`),
  ]);
  // `req -x509` would be one step, and makes no certificate that is over.
  openssl([
    ...words(`x509 -req -copy_extensions copy -days ${days}`),
    ...words(`-in ${request} -signkey ${key} -out ${cert}`),
  ]);
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
