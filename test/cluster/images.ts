import { createHash } from "node:crypto";
import {
  copyFile,
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withFileLock } from "./flock.ts";
import { cacheDir } from "./paths.ts";
import { run } from "./run.ts";

/** Names by which test pods ask for busybox; all are the machine's own static busybox, as there may be no registry. */
export const BUSYBOX_IMAGE = "docker.io/library/busybox:stable";
const BUSYBOX_TAGS = [
  BUSYBOX_IMAGE,
  "docker.io/library/busybox:1.36",
  "docker.io/library/busybox:1.37",
];
export const PAUSE_IMAGE = "localhost/lockedcron-test/pause:1";
export const COREDNS_IMAGE = "localhost/lockedcron-test/coredns:1";

export interface ImageRecipe {
  readonly name: string;
  readonly tags: readonly string[];
  readonly entrypoint: readonly string[];
  readonly command?: readonly string[];
  readonly user?: string;
  /** Lays down the root file system in `root`. */
  readonly fill: (root: string) => Promise<void>;
  /** What the content depends on, besides this recipe. */
  readonly inputs: readonly string[];
}

const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");

/** Reproducible: same files, same bytes. */
async function tar(archive: string, dir: string, files: readonly string[]): Promise<void> {
  const same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
  await run("tar", [...same, "-cf", archive, "-C", dir, ...files]);
}

/**
 * Writes an image as a `docker save` archive: one layer, one config, a manifest
 * (https://github.com/moby/docker-image-spec, v1.2). No builder and no registry needed for images of one static binary.
 */
async function writeImage(recipe: ImageRecipe, file: string): Promise<void> {
  const work = await mkdtemp(`${file}.`);
  try {
    const root = join(work, "root");
    await mkdir(root);
    await recipe.fill(root);
    await tar(join(work, "layer.tar"), root, ["."]);
    const config = JSON.stringify({
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      created: "1970-01-01T00:00:00Z",
      config: {
        Entrypoint: recipe.entrypoint,
        ...(recipe.command && { Cmd: recipe.command }),
        ...(recipe.user && { User: recipe.user }),
        Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        WorkingDir: "/",
      },
      rootfs: {
        type: "layers",
        diff_ids: [`sha256:${sha256(await readFile(join(work, "layer.tar")))}`],
      },
      history: [{ created: "1970-01-01T00:00:00Z", created_by: "lockedcron test cluster" }],
    });
    const configFile = `${sha256(config)}.json`;
    await writeFile(join(work, configFile), config);
    await writeFile(
      join(work, "manifest.json"),
      JSON.stringify([{ Config: configFile, RepoTags: recipe.tags, Layers: ["layer.tar"] }]),
    );
    await tar(join(work, "image.tar"), work, ["manifest.json", configFile, "layer.tar"]);
    await rename(join(work, "image.tar"), file);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The archive of an image, from the cache or made anew. */
export async function ensureImage(recipe: ImageRecipe): Promise<string> {
  const { name, tags, entrypoint, command, user, inputs } = recipe;
  const key = sha256(JSON.stringify([tags, entrypoint, command, user, inputs])).slice(0, 12);
  const file = join(cacheDir(), "images", `${name}-${key}.tar`);
  const there = (): Promise<boolean> =>
    stat(file).then(
      () => true,
      () => false,
    );
  if (await there()) {
    await utimes(file, new Date(), new Date()).catch(() => {}); // used: keepNewest
    return file;
  }
  await withFileLock(join(cacheDir(), "locks", "images.lock"), async () => {
    if (await there()) return;
    await mkdir(dirname(file), { recursive: true });
    await keepNewest(dirname(file), name);
    await writeImage(recipe, file);
  });
  return file;
}

/** Archives of one name that stay beside a new one. */
const KEPT = 2;
/** Whoever was handed an archive has it loaded by then. */
const IN_USE_MS = 20 * 60_000;

/** Every change makes another archive, of 130 MB for the operator: the newest few of a name stay, by when they were last used. */
export async function keepNewest(dir: string, name: string): Promise<void> {
  const archives = (await readdir(dir)).filter(
    (file) => file.replace(/-[0-9a-f]{12}\.tar$/, "") === name,
  );
  const aged = await Promise.all(
    archives.map(async (file) => ({ file, usedMs: (await stat(join(dir, file))).mtimeMs })),
  );
  const old = aged.toSorted((a, b) => b.usedMs - a.usedMs).slice(KEPT);
  const gone = old.filter(({ usedMs }) => usedMs < Date.now() - IN_USE_MS);
  await Promise.all(gone.map(({ file }) => rm(join(dir, file), { force: true })));
}

export async function addBinary(root: string, from: string, to: string): Promise<void> {
  await mkdir(join(root, to, ".."), { recursive: true });
  await copyFile(from, join(root, to));
  await chmod(join(root, to), 0o755);
}

/** A root file system with busybox and all its commands. */
export async function fillBusybox(root: string, busybox: string): Promise<void> {
  await addBinary(root, busybox, "bin/busybox");
  const applets = (await run(busybox, ["--list"])).trim().split("\n");
  const commands = applets.filter((applet) => applet !== "busybox");
  await Promise.all(commands.map((applet) => symlink("busybox", join(root, "bin", applet))));
  for (const dir of ["etc", "root", "proc", "sys", "dev", "var"]) await mkdir(join(root, dir));
  await mkdir(join(root, "tmp"));
  await chmod(join(root, "tmp"), 0o1777);
  await writeFile(
    join(root, "etc/passwd"),
    "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
  );
  await writeFile(join(root, "etc/group"), "root:x:0:\nnobody:x:65534:\n");
}

/** Archives of the images every node has: the sandbox, busybox for workloads, CoreDNS. Kept in the cache. */
export async function ensureNodeImages(binaries: {
  busybox: string;
  coredns: string;
}): Promise<string[]> {
  const { mtimeMs, size } = await stat(binaries.busybox);
  const busyboxInput = `${binaries.busybox} ${size} ${mtimeMs}`;
  const fill = (root: string): Promise<void> => fillBusybox(root, binaries.busybox);
  return Promise.all(
    [
      // Only holds the sandbox's namespaces; containerd ends it with SIGKILL.
      { name: "pause", tags: [PAUSE_IMAGE], entrypoint: ["/bin/busybox", "sleep", "infinity"] },
      { name: "busybox", tags: BUSYBOX_TAGS, entrypoint: [], command: ["sh"] },
    ]
      .map((image): ImageRecipe => ({ ...image, fill, inputs: [busyboxInput] }))
      .concat({
        name: "coredns",
        tags: [COREDNS_IMAGE],
        entrypoint: ["/coredns"],
        user: "65532:65532",
        fill: (root) => addBinary(root, binaries.coredns, "coredns"),
        inputs: [basename(join(binaries.coredns, ".."))],
      })
      .map(ensureImage),
  );
}
