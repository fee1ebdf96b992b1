import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, closeSync } from "node:fs";
import { join } from "node:path";
import type { Socket } from "node:net";
import { clusterDir, runDir } from "./paths.ts";
import { identify } from "./proc.ts";
import type { ProcessId } from "./proc.ts";
import { removeCluster } from "./state.ts";

/**
 * A small process beside the owner of a cluster, that removes the cluster when the owner ends without doing so: Ctrl-C, an
 * unhandled rejection, SIGKILL. It learns of it by the end of a pipe, which the kernel closes for every way to die.
 */
export interface Guardian {
  readonly id: ProcessId | undefined;
  /** The cluster is gone, or is to stay: the guardian ends without touching it. */
  dismiss(): Promise<void>;
}

const DISMISSED = "dismissed";

export async function hireGuardian(name: string): Promise<Guardian> {
  const log = openSync(join(runDir(), "guardian.log"), "a", 0o600);
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "main.ts"), "guard", "--name", name],
    { cwd: "/", detached: true, stdio: ["pipe", log, log] },
  );
  closeSync(log);
  await once(child, "spawn");
  // Neither the guardian nor the pipe keeps the owner from ending.
  child.unref();
  const pipe = child.stdin as Socket;
  pipe.unref();
  pipe.on("error", () => {}); // it was killed: the next start reaps instead
  const exited = once(child, "exit");
  return {
    id: identify(child.pid ?? 0),
    dismiss: async () => {
      pipe.end(DISMISSED);
      if (child.exitCode === null && child.signalCode === null) {
        child.ref();
        await exited;
      }
    },
  };
}

/** The guardian's own life: waits for the end of its input, then acts. */
export async function guard(name: string, input: AsyncIterable<Buffer | string>): Promise<void> {
  let said = "";
  for await (const chunk of input) said += String(chunk);
  if (said === DISMISSED) return;
  console.error(`${new Date().toISOString()} the owner of ${clusterDir(name)} ended: removing it`);
  await removeCluster(name);
}
