import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { ClusterError, codeOf } from "./errors.ts";
import { withFileLock } from "./flock.ts";
import { cacheDir, searchPath } from "./paths.ts";
import { run, RunError } from "./run.ts";

/** A program that is not built from Go modules, with the Debian package that has it. */
interface Program {
  readonly command: string;
  readonly package: string;
  /** Folders to look in besides PATH. */
  readonly also?: readonly string[];
}

/** Where CNI plug-ins live: Debian's place, then the usual one. */
const CNI_DIRS = ["/usr/lib/cni", "/opt/cni/bin"];

/** What real pods need on the host. */
const NODE_PROGRAMS: readonly Program[] = [
  { command: "containerd", package: "containerd" },
  { command: "ctr", package: "containerd" },
  { command: "runc", package: "runc" },
  { command: "iptables", package: "iptables" },
  { command: "ip", package: "iproute2" },
  { command: "nsenter", package: "util-linux" },
  { command: "mount", package: "mount" },
  { command: "busybox", package: "busybox-static" },
  { command: "ptp", package: "containernetworking-plugins", also: CNI_DIRS },
];

/** Absolute path of a program of this machine; undefined when it has none. */
export async function findProgram(
  command: string,
  also: readonly string[] = [],
): Promise<string | undefined> {
  for (const dir of [...searchPath().split(delimiter), ...also]) {
    const file = join(dir, command);
    const found = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return file;
  }
  return undefined;
}

const find = ({ command, also }: Program): Promise<string | undefined> =>
  findProgram(command, also);

async function missing(programs: readonly Program[]): Promise<Program[]> {
  const found = await Promise.all(programs.map(find));
  return programs.filter((_, index) => found[index] === undefined);
}

const unique = (items: readonly string[]): string[] => [...new Set(items)];

async function install(packages: readonly string[]): Promise<void> {
  const apt = (...args: string[]): Promise<string> =>
    run("apt-get", ["-o", "DPkg::Lock::Timeout=300", "-q", "-y", ...args], {
      env: { DEBIAN_FRONTEND: "noninteractive" },
    });
  try {
    await apt("update");
    await apt("install", "--no-install-recommends", ...packages);
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      throw new ClusterError(
        `real pods need the Debian packages ${packages.join(", ")}, and this machine has no apt-get: install what they hold by hand, or use --mode simulated`,
      );
    }
    if (!(error instanceof RunError)) throw error;
    throw new ClusterError(`installing ${packages.join(", ")} failed: ${error.stderr.trim()}`);
  }
}

/** One more program of a Debian package of the same name; installed when it is missing and we may. */
export async function ensureProgram(command: string, log: (line: string) => void): Promise<string> {
  const found = await findProgram(command);
  if (found !== undefined) return found;
  await withFileLock(join(cacheDir(), "locks", "apt.lock"), async () => {
    if ((await findProgram(command)) !== undefined) return; // installed while we waited
    log(`installing the Debian package ${command}`);
    await install([command]);
  });
  const now = await findProgram(command);
  if (now === undefined) throw new ClusterError(`${command} is missing: install it`);
  return now;
}

/** Absolute paths of the programs that real pods need; installs the Debian packages of those that are missing. */
export async function ensureNodePrograms(
  log: (line: string) => void,
): Promise<{ containerd: string; ctr: string; busybox: string; cniDir: string }> {
  if ((await missing(NODE_PROGRAMS)).length > 0) {
    await withFileLock(join(cacheDir(), "locks", "apt.lock"), async () => {
      const packages = unique((await missing(NODE_PROGRAMS)).map((program) => program.package));
      if (packages.length === 0) return; // installed while we waited
      log(`installing Debian packages: ${packages.join(", ")}`);
      const start = performance.now();
      await install(packages);
      log(`installed in ${Math.round((performance.now() - start) / 1000)} s`);
    });
  }
  const path = async (command: string): Promise<string> => {
    const program = NODE_PROGRAMS.find((entry) => entry.command === command);
    const file = program && (await find(program));
    if (!file) throw new ClusterError(`${command} is still missing after the installation`);
    return file;
  };
  const [containerd, ctr, busybox, ptp] = await Promise.all(
    ["containerd", "ctr", "busybox", "ptp"].map(path),
  );
  if (!containerd || !ctr || !busybox || !ptp) throw new ClusterError("a program is missing");
  return { containerd, ctr, busybox, cniDir: join(ptp, "..") };
}
