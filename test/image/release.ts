/**
 * `make release`: everything of a version, into dist/release: the image as an archive, the chart, the manifest for kubectl,
 * the CRD, SBOM, licences, what the image is built on, and the checksums of them all. Only the base is pulled, by its digest;
 * with BASES=stand-ins nothing is, and the archive's name says so.
 */
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../tools/ci/command.ts";
import { bundle } from "../../tools/image/bundle.ts";
import { CHART, openHelm } from "../chart/helm.ts";
import { STATIC_CRD, STATIC_MANIFEST } from "../chart/static.ts";
import { messageOf } from "../cluster/errors.ts";
import { run } from "../cluster/run.ts";
import { baseNames, digestsFor, type Bases } from "./bases.ts";
import { buildImage, OPERATOR_IMAGE } from "./build.ts";
import { sbom } from "./sbom.ts";

const DIR = join(ROOT, "dist/release");

let digests: Bases | undefined;
try {
  digests = digestsFor(process.env);
} catch (error) {
  console.error(messageOf(error));
  process.exit(2);
}
const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as {
  version: string;
};
const revision = (await run("git", ["rev-parse", "HEAD"], { cwd: ROOT })).trim();
const log = (line: string): void => console.error(line);

await rm(DIR, { recursive: true, force: true });
await mkdir(DIR, { recursive: true });
const name = `${OPERATOR_IMAGE}:${version}`;
const image = await buildImage({ name, stages: "offline", version, revision, digests, log });
const suffix = digests === undefined ? "-stand-in" : "";
await copyFile(image, join(DIR, `lockedcron-image-${version}${suffix}.tar`));
const names = await baseNames();
const pinned = Object.entries(names).map(([stage, base]) => {
  const digest = digests?.[stage as keyof typeof names];
  return digest === undefined ? `${base} (stand-in)\n` : `${base}@${digest}\n`;
});
await writeFile(join(DIR, "bases.txt"), pinned.join(""));

const helm = await openHelm();
await helm(["package", CHART, "--destination", DIR]);
const parts = await Promise.all(
  [STATIC_CRD, STATIC_MANIFEST].map((file) => readFile(file, "utf8")),
);
await writeFile(join(DIR, "lockedcron.yaml"), parts.join("---\n"));
await copyFile(join(ROOT, "crds/lockedcronjobs.yaml"), join(DIR, "lockedcronjobs.yaml"));

const scratch = join(DIR, "app");
const { packages } = await bundle(scratch);
await copyFile(join(scratch, "THIRD-PARTY.md"), join(DIR, "THIRD-PARTY.md"));
await rm(scratch, { recursive: true });
await writeFile(join(DIR, "sbom.cdx.json"), await sbom(ROOT, { version, packages }));

const sums = await Promise.all(
  (await readdir(DIR)).toSorted().map(async (file) => {
    const hash = createHash("sha256").update(await readFile(join(DIR, file)));
    return `${hash.digest("hex")}  ${file}\n`;
  }),
);
await writeFile(join(DIR, "SHA256SUMS"), sums.join(""));
console.log(`${DIR}:\n${sums.join("")}`);
