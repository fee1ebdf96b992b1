/** The replicas of the operator, and what can be done to them. */
import { createWriteStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startReplica, type LogLine, type Replica } from "../harness/replica.ts";
import { startProxy } from "../redis/proxy.ts";

export type Condition = "up" | "starting" | "killed" | "frozen" | "cut off";

/** A replica with its only way to the API server, a proxy. */
export interface Player extends AsyncDisposable {
  readonly name: string;
  readonly condition: Condition;
  readonly pid: number;
  /** http://127.0.0.1:PORT with /readyz and /metrics; changes with each start. */
  readonly url: string;
  readonly logFile: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** A new process of the same name, as a supervisor starts it; resolves when it takes ticks. */
  start(): Promise<void>;
  /** SIGSTOP, SIGCONT. */
  freeze(): void;
  thaw(): void;
  /** Away from the API server: nothing comes through any more, or connections are reset and refused. */
  cut(how: "silence" | "reset"): void;
  /** Resolves when it is ready again. */
  heal(): Promise<void>;
  /** Starts it anew whenever it ends. */
  supervise(): void;
}

export interface PlayerOptions {
  readonly name: string;
  /** With credentials that RBAC limits. */
  readonly kubeconfig: string;
  readonly server: URL;
  readonly redis: readonly string[];
  readonly dir: string;
  onLine(line: LogLine): void;
}

const READY_MS = 60_000;
const RESTART_MS = 1_000;

export async function createPlayer(o: PlayerOptions): Promise<Player> {
  const { name, server } = o;
  const proxy = await startProxy(() => Number(server.port), server.hostname);
  const kubeconfig = join(o.dir, `${name}.kubeconfig`);
  const through = o.kubeconfig.replaceAll(server.origin, `https://127.0.0.1:${proxy.port}`);
  await writeFile(kubeconfig, through, { mode: 0o600 });
  const logFile = join(o.dir, `${name}.log`);
  const log = createWriteStream(logFile, { flags: "a" });
  let condition: Condition = "starting";
  let replica: Replica | undefined;
  let over = false;

  async function start(): Promise<void> {
    condition = "starting";
    replica = await startReplica({
      name,
      kubeconfig,
      redis: o.redis,
      onLine(line) {
        log.write(`${JSON.stringify(line)}\n`);
        o.onLine(line);
      },
    });
    await replica.ready(READY_MS);
    condition = "up";
  }

  function mend(): void {
    Object.assign(proxy.faults, { refuse: false, dropRequests: false, dropReplies: false });
    // What was swallowed is missing in the middle of each stream: none of them can go on.
    proxy.cut();
  }

  return {
    name,
    get condition() {
      return condition;
    },
    get pid() {
      return replica?.pid ?? 0;
    },
    get url() {
      return replica?.url ?? "";
    },
    logFile,
    start,
    async kill() {
      condition = "killed";
      await replica?.kill();
    },
    freeze() {
      condition = "frozen";
      replica?.pause();
    },
    thaw() {
      replica?.resume();
      condition = "up";
    },
    cut(how) {
      condition = "cut off";
      if (how === "silence") {
        proxy.faults.dropRequests = true;
        proxy.faults.dropReplies = true;
      } else {
        proxy.faults.refuse = true;
        proxy.cut();
      }
    },
    async heal() {
      mend();
      await replica?.ready(READY_MS);
      condition = "up";
    },
    supervise() {
      const again = async (): Promise<void> => {
        await replica?.exited;
        if (over) return;
        await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
        // It never became ready, or ended before: its log says why, and the next one is tried.
        await start().catch(() => undefined);
        await again();
      };
      void again();
    },
    async [Symbol.asyncDispose]() {
      over = true;
      await replica?.kill();
      await proxy.close();
      log.end();
    },
  };
}
