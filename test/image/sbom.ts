/** A bill of materials in CycloneDX 1.6 JSON: the packages whose code is in the bundle, and no others. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

interface LockEntry {
  readonly integrity?: string;
}

export async function sbom(
  root: string,
  o: { readonly version: string; readonly packages: readonly string[] },
): Promise<string> {
  const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")) as {
    packages: Readonly<Record<string, LockEntry>>;
  };
  const components = await Promise.all(
    o.packages.map(async (folder) => {
      const text = await readFile(join(root, folder, "package.json"), "utf8");
      return componentOf(JSON.parse(text) as Manifest, lock.packages[folder]);
    }),
  );
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        name: "lockedcron",
        version: o.version,
        purl: `pkg:npm/lockedcron@${o.version}`,
        licenses: [{ license: { id: "Apache-2.0" } }],
      },
    },
    components,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function componentOf({ name, version, license }: Manifest, entry: LockEntry | undefined): object {
  const [algorithm, digest] = entry?.integrity?.split("-", 2) ?? [];
  return {
    type: "library",
    name,
    version,
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    ...(license !== undefined && { licenses: [{ expression: license }] }),
    ...(algorithm === "sha512" &&
      digest !== undefined && {
        hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }],
      }),
  };
}
