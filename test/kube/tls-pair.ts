import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { type Certificates, openCertificates } from "../cluster/certs.ts";

/** A CA of its own in a folder that goes away. */
export async function newCertificates(): Promise<
  { certificates: Certificates; dir: string } & AsyncDisposable
> {
  const dir = await mkdtemp(join(tmpdir(), "lockedcron-tls-"));
  return {
    dir,
    certificates: await openCertificates(dir),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}
