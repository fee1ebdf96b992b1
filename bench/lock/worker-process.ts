import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface Slice {
  readonly samples: readonly number[];
  readonly errors: number;
  readonly rss_mb: number;
}

/** One library's process. */
export interface Worker {
  readonly name: string;
  /** null: it did not come back in time, and is gone now. */
  slice(clients: number, ms: number): Promise<Slice | null>;
  stop(): Promise<void>;
}

/** How long a library may take after the end of a slice before it counts as hung. */
const GRACE_MS = 15_000;

export async function startWorker(name: string, argv: readonly string[]): Promise<Worker> {
  const [file = "", ...args] = argv;
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const next = lines[Symbol.asyncIterator]();
  const first = await next.next();
  if (first.done === true) throw new Error(`${name} did not start`);
  let gone = false;

  async function stop(): Promise<void> {
    if (gone) return;
    gone = true;
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  return {
    name,
    stop,
    async slice(clients, ms) {
      if (gone) return null;
      child.stdin.write(`${JSON.stringify({ clients, ms })}\n`);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<null>((resolve) => {
        timer = setTimeout(() => resolve(null), ms + GRACE_MS);
      });
      const answer = await Promise.race([next.next(), late]);
      clearTimeout(timer);
      if (answer === null || answer.done === true) {
        await stop();
        return null;
      }
      return JSON.parse(answer.value) as Slice;
    },
  };
}
