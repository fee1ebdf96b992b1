import { execFile, spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface RedisBinaries {
  readonly server: string;
  readonly sentinel: string;
}

const PACKAGES = ["redis-server", "redis-sentinel"];
/** Debian's hook that decides whether an installed service is started (invoke-rc.d(8)): 101 = no. */
const POLICY = "/usr/sbin/policy-rc.d";
const MISSING =
  "redis-server and redis-sentinel are needed: install the packages " +
  `${PACKAGES.join(" and ")} (apt-get install, as root), or put the binaries on PATH`;

function onPath(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/bin", "/usr/bin"];
  return folders
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function find(): RedisBinaries | undefined {
  const server = onPath("redis-server");
  // redis-sentinel is the same program under another name.
  return server === undefined
    ? undefined
    : { server, sentinel: onPath("redis-sentinel") ?? server };
}

async function install(): Promise<void> {
  const say = (text: string) => process.stderr.write(`[redis] ${text}\n`);
  // The packages start services on ports 6379 and 26379 when they are installed; nobody asked for those.
  const forbidden = existsSync(POLICY);
  if (!forbidden) writeFileSync(POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    const apt = async (...words: string[]) => run("apt-get", ["-q", "-y", ...words], { env });
    say(`installing ${PACKAGES.join(", ")} with apt-get …`);
    try {
      await apt("install", "--no-install-recommends", ...PACKAGES);
    } catch {
      say("refreshing the package lists first …");
      await apt("update");
      await apt("install", "--no-install-recommends", ...PACKAGES);
    }
    say("installed; the packages' own services stay off");
  } finally {
    if (!forbidden) rmSync(POLICY, { force: true });
  }
  // Nor at the next boot, where systemd is in charge.
  for (const service of PACKAGES) spawnSync("systemctl", ["disable", service], { stdio: "ignore" });
}

let found: Promise<RedisBinaries> | undefined;

/** The programs, installed on demand when they are missing and we may. @throws Error that says what to install */
export function redisBinaries(): Promise<RedisBinaries> {
  found ??= (async () => {
    const there = find();
    if (there !== undefined) return there;
    if (process.getuid?.() !== 0 || onPath("apt-get") === undefined) throw new Error(MISSING);
    await install();
    const now = find();
    if (now === undefined) throw new Error(MISSING);
    return now;
  })();
  return found;
}
