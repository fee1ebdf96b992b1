/**
 * The operator's image, from the unmodified Dockerfile, by buildah: without Docker, and without a registry, as its bases
 * are the stand-ins under the same names, pinned by their digests as the real ones are in a release. `offline` takes the
 * bundle from this machine instead of the first stage, which needs npm's registry.
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
import { keepNewest } from "../cluster/images.ts";
import { ensureProgram } from "../cluster/packages.ts";
import { cacheDir, searchPath } from "../cluster/paths.ts";
import { run } from "../cluster/run.ts";
import { baseNames, type Bases } from "./bases.ts";
import { standIn, type StandIn } from "./stand-ins.ts";

export const OPERATOR_IMAGE = "ghcr.io/lockedcron/lockedcron";

export interface BuildOptions {
  /** Full name with tag. */
  readonly name: string;
  readonly stages: "offline" | "all";
  readonly version?: string;
  readonly revision?: string;
  /** Sources of another version of the product, with its node_modules; by this version's Dockerfile. */
  readonly root?: string;
  /** Of the real bases, which are pulled then; without, the stand-ins. */
  readonly digests?: Bases | undefined;
  readonly log?: (line: string) => void;
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

/** A base of the stages that are built, and the ARG that pins it. */
interface Base {
  readonly arg: string;
  readonly name: string;
  /** Where the stand-in is; of a real one only the digest is known. */
  readonly archive?: string;
  readonly digest?: string;
}

async function basesOf({ stages, digests }: BuildOptions): Promise<Base[]> {
  const names = await baseNames();
  const base = async (arg: string, stage: keyof Bases, kind: StandIn): Promise<Base> => {
    const name = names[stage];
    if (digests !== undefined) return { arg, name, digest: digests[stage] };
    return { arg, name, archive: await standIn(kind, name) };
  };
  const runtime = await base("RUNTIME_DIGEST", "runtime", "distroless");
  return stages === "all" ? [runtime, await base("NODE_DIGEST", "node", "node")] : [runtime];
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
      await bundle(join(work, "context/app"), o.root);
      const bases = await basesOf(o);
      const dockerfile = await readFile(join(ROOT, "Dockerfile"));
      const key = createHash("sha256")
        .update(JSON.stringify([o.name, o.stages, o.version, o.revision, bases]))
        .update(dockerfile)
        .update(await hashOf(join(work, "context")))
        .digest("hex")
        .slice(0, 12);
      const file = join(cacheDir(), "images", `operator-${key}.tar`);
      if (await exists(file)) {
        await utimes(file, new Date(), new Date());
        return file;
      }
      await keepNewest(dirname(file), "operator");
      const storage = ["--root", join(work, "root"), "--runroot", join(work, "run")];
      const call = (...args: string[]): Promise<string> =>
        run(buildah, [...storage, "--storage-driver", "vfs", ...args], { cwd: ROOT });
      const from =
        o.stages === "offline"
          ? ["--build-context", `bundle=${join(work, "context")}`]
          : ["--secret", `id=npmrc,src=${await npmrc(work)}`];
      const given: Record<string, string | undefined> = {
        VERSION: o.version,
        REVISION: o.revision,
      };
      for (const { arg, name, archive, digest } of bases) {
        given[arg] = digest;
        if (archive === undefined) continue;
        await call("pull", "--quiet", `docker-archive:${archive}`);
        const found = await call("images", "--format", "{{.Digest}}", name);
        given[arg] = found.split("\n")[0];
      }
      const args = Object.entries(given).flatMap(([name, value]) =>
        value === undefined ? [] : ["--build-arg", `${name}=${value}`],
      );
      const start = performance.now();
      const pull = o.digests === undefined ? ["--pull-never"] : [];
      const how = ["--isolation", "chroot", ...pull, "--timestamp", "0"];
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

const exists = (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  );
