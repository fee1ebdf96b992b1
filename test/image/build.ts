/**
 * The operator's image, from the unmodified Dockerfile, by buildah: without Docker, and without a registry, as its bases
 * are the stand-ins under the same names. `offline` takes the bundle from this machine instead of the first stage, which
 * needs npm's registry.
 */
import { createHash } from "node:crypto";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { bundle } from "../../tools/image/bundle.ts";
import { ROOT } from "../../tools/ci/command.ts";
import { withFileLock } from "../cluster/flock.ts";
import { ensureProgram } from "../cluster/packages.ts";
import { cacheDir, searchPath } from "../cluster/paths.ts";
import { run } from "../cluster/run.ts";
import { standIn } from "./stand-ins.ts";

export const OPERATOR_IMAGE = "ghcr.io/lockedcron/lockedcron";

export interface BuildOptions {
  /** Full name with tag. */
  readonly name: string;
  readonly stages: "offline" | "all";
  readonly version?: string;
  readonly revision?: string;
  readonly log?: (line: string) => void;
}

/** Defaults of the Dockerfile's ARGs: the bases by name. */
async function bases(): Promise<{ node: string; runtime: string }> {
  const text = await readFile(join(ROOT, "Dockerfile"), "utf8");
  const arg = (name: string): string => {
    const value = new RegExp(`^ARG ${name}=(\\S+)$`, "m").exec(text)?.[1];
    if (value === undefined) throw new Error(`the Dockerfile has no ARG ${name} with a default`);
    return value;
  };
  return { node: arg("NODE_IMAGE"), runtime: arg("RUNTIME_IMAGE") };
}

async function hashOf(dir: string): Promise<string> {
  const hash = createHash("sha256");
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((e) => join(e.parentPath, e.name));
  for (const file of files.toSorted()) {
    hash.update(`${relative(dir, file)}\0`).update(await readFile(file));
  }
  return hash.digest("hex");
}

/** npm's settings of this machine, as a file that the build sees as a secret: a mirror, its certificate. */
async function npmrc(dir: string): Promise<string> {
  // By the Node that the machine's npm came with: that of the project knows no settings of the machine.
  const folders = searchPath()
    .split(":")
    .filter((folder) => !folder.endsWith("node_modules/.bin"));
  const env = { PATH: folders.join(":") };
  const setting = async (name: string): Promise<string> => {
    const value = (await run("npm", ["config", "get", name], { cwd: dir, env })).trim();
    return value === "null" || value === "undefined" ? "" : `${name}=${value}\n`;
  };
  const file = join(dir, "npmrc");
  await writeFile(file, (await setting("registry")) + (await setting("cafile")), { mode: 0o600 });
  return file;
}

/** @returns the archive (`docker save`), from the cache when nothing changed */
export async function buildImage(o: BuildOptions): Promise<string> {
  const { log = () => {} } = o;
  const buildah = await ensureProgram("buildah", log);
  const home = join(cacheDir(), "buildah");
  await mkdir(home, { recursive: true });
  return withFileLock(join(cacheDir(), "locks", "buildah.lock"), async () => {
    const work = await mkdtemp(join(home, "work-"));
    try {
      await bundle(join(work, "context/app"));
      const { node, runtime } = await bases();
      const archives = [await standIn("distroless", runtime)];
      if (o.stages === "all") archives.push(await standIn("node", node));
      const dockerfile = await readFile(join(ROOT, "Dockerfile"));
      const key = createHash("sha256")
        .update(JSON.stringify([o.name, o.stages, o.version, o.revision, archives]))
        .update(dockerfile)
        .update(await hashOf(join(work, "context")))
        .digest("hex")
        .slice(0, 12);
      const file = join(cacheDir(), "images", `operator-${key}.tar`);
      if (await exists(file)) {
        await utimes(file, new Date(), new Date());
        return file;
      }
      await forgetOld(dirname(file));
      const storage = ["--root", join(work, "root"), "--runroot", join(work, "run")];
      const call = (...args: string[]): Promise<string> =>
        run(buildah, [...storage, "--storage-driver", "vfs", ...args], { cwd: ROOT });
      for (const archive of archives) await call("pull", "--quiet", `docker-archive:${archive}`);
      const from =
        o.stages === "offline"
          ? ["--build-context", `bundle=${join(work, "context")}`]
          : ["--secret", `id=npmrc,src=${await npmrc(work)}`];
      const args = Object.entries({ VERSION: o.version, REVISION: o.revision }).flatMap(
        ([name, value]) => (value === undefined ? [] : ["--build-arg", `${name}=${value}`]),
      );
      const start = performance.now();
      const how = ["--isolation", "chroot", "--pull-never", "--timestamp", "0"];
      await call("bud", ...how, ...from, ...args, "--tag", o.name, ROOT);
      await call("push", "--quiet", o.name, `docker-archive:${join(work, "image.tar")}:${o.name}`);
      await rename(join(work, "image.tar"), file);
      log(`built ${o.name} in ${Math.round((performance.now() - start) / 1000)} s`);
      return file;
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });
}

/** Every change of the code makes an image of 130 MB: what nobody has asked for since yesterday goes. */
async function forgetOld(dir: string): Promise<void> {
  const yesterday = Date.now() - 24 * 3_600_000;
  const names = await readdir(dir).catch(() => []);
  for (const name of names.filter((each) => each.startsWith("operator-"))) {
    const file = join(dir, name);
    if ((await stat(file)).mtimeMs < yesterday) await rm(file, { force: true });
  }
}

const exists = (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  );
