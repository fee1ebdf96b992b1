/**
 * The operator and its CLI as a few files of plain JavaScript, with every package in them: what the image carries.
 *
 *   node tools/image/bundle.ts DIR
 *
 *   DIR/package.json            name and version
 *   DIR/dist/main.js cli.js     the programs, and the chunks that they share
 *   DIR/dist/scripts/*.lua      read at run time
 *   DIR/LICENSE NOTICE THIRD-PARTY.md
 *
 * The same sources give the same bytes, on any machine: nothing in them is of a platform.
 */
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { rolldown } from "rolldown";
import { packagesOf, thirdParty } from "./third-party.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");

/**
 * Classes of every API, of which we take the one that reads a kubeconfig. Without a word of the package's own a bundler keeps
 * them all: a fifth of the time to start. Its one module with an effect (polyfill.js) is for Node 18.
 */
const PURE = /\/@kubernetes\/client-node\/dist\//;

export interface Bundle {
  /** `node_modules/NAME` of every package that code was taken from. */
  readonly packages: readonly string[];
  /** Bytes of all JavaScript. */
  readonly size: number;
}

/** @param root the sources: this project, or another version of it */
export async function bundle(dir: string, root = ROOT): Promise<Bundle> {
  await rm(dir, { recursive: true, force: true });
  const dist = path.join(dir, "dist");
  await mkdir(dist, { recursive: true });
  await using build = await rolldown({
    cwd: root,
    input: { main: "src/main.ts", cli: "src/cli/main.ts" },
    platform: "node",
    tsconfig: false,
    treeshake: { moduleSideEffects: [{ test: PURE, sideEffects: false }] },
    // A package that is not found would only be missed at run time.
    onLog: (level, log, handle) => handle(level === "warn" ? "error" : level, log),
  });
  const { output } = await build.write({
    dir: dist,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    // Comments with licences are in THIRD-PARTY.md as whole texts; names stay, for stack traces.
    comments: false,
    minify: false,
  });
  const chunks = output.filter((part) => part.type === "chunk");
  const packages = packagesOf(chunks.flatMap(({ moduleIds }) => moduleIds));
  const { name, version } = JSON.parse(
    await readFile(path.join(root, "package.json"), "utf8"),
  ) as Record<"name" | "version", string>;
  const about = { name, version, type: "module", private: true };
  await Promise.all([
    cp(path.join(root, "src/lock/scripts"), path.join(dist, "scripts"), { recursive: true }),
    cp(path.join(root, "LICENSE"), path.join(dir, "LICENSE")),
    cp(path.join(root, "NOTICE"), path.join(dir, "NOTICE")),
    writeFile(path.join(dir, "package.json"), `${JSON.stringify(about, null, 2)}\n`),
    writeFile(path.join(dir, "THIRD-PARTY.md"), await thirdParty(root, packages)),
  ]);
  return { packages, size: chunks.reduce((sum, { code }) => sum + Buffer.byteLength(code), 0) };
}

if (import.meta.main) {
  const [dir] = process.argv.slice(2);
  if (dir === undefined) {
    console.error("Usage: node tools/image/bundle.ts DIR");
    process.exitCode = 2;
  } else {
    const { packages, size } = await bundle(path.resolve(dir));
    console.log(`${dir}: ${(size / 1e6).toFixed(1)} MB of code, with ${packages.length} packages`);
  }
}
