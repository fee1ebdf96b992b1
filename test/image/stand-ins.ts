/**
 * Stand-ins for the images that the Dockerfile and the chart name, for machines without a registry: under the same
 * names, with the same programs in the same places, put together from what this machine has.
 */
import { copyFile, cp, mkdir, realpath, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { addBinary, ensureImage, fillBusybox, type ImageRecipe } from "../cluster/images.ts";
import { findProgram } from "../cluster/packages.ts";
import { run } from "../cluster/run.ts";
import { redisBinaries } from "../redis/binaries.ts";
import { ROOT } from "../../tools/ci/command.ts";

const CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
const NODE = join(ROOT, "node_modules/node/bin/node");

async function must(command: string): Promise<string> {
  const file = await findProgram(command);
  if (file === undefined) throw new Error(`${command} is needed for the stand-in images`);
  return file;
}

/** The shared libraries of a program, where the program looks for them. */
async function libraries(file: string): Promise<string[]> {
  const lines = (await run("ldd", [file])).split("\n");
  return lines.flatMap((line) => /(?:=> )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

async function addProgram(root: string, from: string, to: string): Promise<void> {
  await addBinary(root, from, to);
  for (const library of await libraries(from)) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await copyFile(await realpath(library), join(root, library));
  }
}

/** What the C library has beside what Node itself needs: add-ons of packages do. */
const MORE_OF_LIBC = ["librt.so.1", "libutil.so.1", "libresolv.so.2", "libnss_dns.so.2"];

async function addMoreOfLibc(root: string): Promise<void> {
  const libc = (await libraries(NODE)).find((file) => file.endsWith("/libc.so.6"));
  if (libc === undefined) throw new Error(`${NODE} needs no libc.so.6`);
  for (const name of MORE_OF_LIBC) {
    const file = join(dirname(libc), name);
    await copyFile(await realpath(file), join(root, file));
  }
}

async function addCertificates(root: string): Promise<void> {
  await mkdir(join(root, dirname(CA_BUNDLE)), { recursive: true });
  await copyFile(CA_BUNDLE, join(root, CA_BUNDLE));
}

/** What its content depends on: a newer package of the machine makes a new image. */
async function inputsOf(...files: string[]): Promise<string[]> {
  const states = await Promise.all(files.map((file) => stat(file)));
  return files.map((file, i) => `${file} ${states[i]?.size} ${states[i]?.mtimeMs}`);
}

/** Node and npm, with a shell: what the Dockerfile builds in. */
async function nodeRecipe(name: string): Promise<ImageRecipe> {
  const [busybox, npmLink] = await Promise.all([must("busybox"), must("npm")]);
  const npm = await realpath(npmLink);
  return {
    name: "node",
    tags: [name],
    entrypoint: [],
    inputs: [...(await inputsOf(NODE, busybox, npm)), ...MORE_OF_LIBC],
    fill: async (root) => {
      await fillBusybox(root, busybox);
      await addProgram(root, NODE, "usr/local/bin/node");
      await addMoreOfLibc(root);
      await addCertificates(root);
      const modules = join(root, "usr/local/lib/node_modules");
      await cp(join(npm, "../.."), join(modules, "npm"), { recursive: true });
      await symlink("../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm"));
      await mkdir(join(root, "usr/bin"), { recursive: true });
      await symlink("/bin/env", join(root, "usr/bin/env"));
    },
  };
}

/** Node and nothing else, no shell: what the operator runs on. */
async function distrolessRecipe(name: string): Promise<ImageRecipe> {
  return {
    name: "distroless",
    tags: [name],
    entrypoint: ["/nodejs/bin/node"],
    user: "65532",
    inputs: await inputsOf(NODE),
    fill: async (root) => {
      await addProgram(root, NODE, "nodejs/bin/node");
      await addCertificates(root);
      await mkdir(join(root, "tmp"));
      await writeFile(
        join(root, "etc/passwd"),
        "nonroot:x:65532:65532::/home/nonroot:/sbin/nologin\n",
      );
    },
  };
}

/** A shell, the server and its client, by the names that Valkey gives them. */
async function valkeyRecipe(name: string): Promise<ImageRecipe> {
  const [busybox, cli, { server }] = await Promise.all([
    must("busybox"),
    must("redis-cli"),
    redisBinaries(),
  ]);
  return {
    name: "valkey",
    tags: [name],
    entrypoint: [],
    command: ["valkey-server"],
    inputs: await inputsOf(busybox, cli, server),
    fill: async (root) => {
      await fillBusybox(root, busybox);
      await addProgram(root, server, "usr/local/bin/valkey-server");
      await addProgram(root, cli, "usr/local/bin/valkey-cli");
      await mkdir(join(root, "data"));
    },
  };
}

const RECIPES = { node: nodeRecipe, distroless: distrolessRecipe, valkey: valkeyRecipe };

export type StandIn = keyof typeof RECIPES;

/** The archive of a stand-in that goes by `name`, a full name with registry and tag. */
export async function standIn(kind: StandIn, name: string): Promise<string> {
  return ensureImage(await RECIPES[kind](name));
}
