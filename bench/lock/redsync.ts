import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Builds the Go peer. @returns its program, or null where there is no Go or the modules cannot be had */
export function redsync(): string | null {
  const program = join(mkdtempSync(join(tmpdir(), "lockedcron-redsync-")), "redsync");
  try {
    execFileSync("go", ["build", "-o", program, "."], {
      cwd: join(import.meta.dirname, "redsync"),
      stdio: ["ignore", "ignore", "inherit"],
      timeout: 180_000,
    });
    return program;
  } catch {
    console.error("without redsync: `go build` did not work here");
    return null;
  }
}
