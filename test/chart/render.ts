/** `make manifests`: writes deploy/install. */
import { writeFile } from "node:fs/promises";
import { openHelm } from "./helm.ts";
import { STATIC_MANIFEST, staticManifest } from "./static.ts";

await writeFile(STATIC_MANIFEST, await staticManifest(await openHelm()));
console.log(`wrote ${STATIC_MANIFEST}`);
