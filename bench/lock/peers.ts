import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A library of another language. */
export interface Peer {
  readonly name: string;
  /** Builds or fetches it. @returns its command less the ports, or null where that does not work */
  command(): readonly string[] | null;
}

const BUILD_TIMEOUT_MS = 240_000;

function prepare(name: string, file: string, args: readonly string[], folder: string): boolean {
  try {
    execFileSync(file, args, {
      cwd: join(import.meta.dirname, folder),
      stdio: ["ignore", "ignore", "inherit"],
      timeout: BUILD_TIMEOUT_MS,
    });
    return true;
  } catch {
    console.error(`without ${name}: \`${file}\` did not work here`);
    return false;
  }
}

const scratch = (name: string) => mkdtempSync(join(tmpdir(), `lockedcron-${name}-`));

export const PEERS: readonly Peer[] = [
  {
    name: "redsync 4.18 (Go)",
    command() {
      const program = join(scratch("redsync"), "redsync");
      const built = prepare("redsync", "go", ["build", "-o", program, "."], "redsync");
      return built ? [program] : null;
    },
  },
  {
    name: "Redisson 3.50 (Java)",
    command() {
      const jars = scratch("redisson");
      const copy = ["-q", "-B", "dependency:copy-dependencies", `-DoutputDirectory=${jars}`];
      const source = join(import.meta.dirname, "redisson", "RedissonPeer.java");
      return prepare("Redisson", "mvn", copy, "redisson")
        ? ["java", "-cp", `${jars}/*`, source]
        : null;
    },
  },
];
