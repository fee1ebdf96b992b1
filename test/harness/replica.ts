/** Replicas of the operator as real processes: started, watched by their log lines, killed, paused, stopped. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";
import { freePort } from "../redis/server.ts";
import { FAULTS_VARIABLE, type Faults } from "./faults.ts";

export interface LogLine {
  time?: string;
  level?: string;
  event?: string;
  msg?: string;
  key?: string;
  tick?: string;
  reason?: string;
  outcome?: string;
  [field: string]: unknown;
}

export interface ReplicaOptions {
  /** Identity of the replica; the test never runs two at once under one name. */
  name: string;
  kubeconfig: string;
  redis: readonly string[];
  namespace?: string;
  flags?: readonly string[];
  env?: Record<string, string>;
  /** With faults it runs test/harness/faulty-main.ts, else src/main.ts. */
  faults?: Faults;
  onLine?: (line: LogLine) => void;
}

export interface Replica extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  /** http://127.0.0.1:PORT with /readyz, /livez, /metrics. */
  readonly url: string;
  readonly lines: readonly LogLine[];
  /** What it wrote that is no JSON line, such as a complaint about a flag. */
  readonly text: () => string;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  alive(): boolean;
  /** Resolves with the first line, past or future, for which this holds; rejects when the process ends without it. */
  line(what: string, holds: (line: LogLine) => boolean, timeoutMs?: number): Promise<LogLine>;
  /** Resolves when /readyz answers 200. */
  ready(timeoutMs?: number): Promise<void>;
  readyz(): Promise<string>;
  metrics(): Promise<string>;
  pause(): void;
  resume(): void;
  signal(name: NodeJS.Signals): void;
  /** SIGKILL, waits until it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, waits until it is gone; returns the exit code. */
  stop(): Promise<number | null>;
}

/** The shell kills the replica when our end of its input closes: a test run that is SIGKILLed leaves nothing behind. */
const GUARD =
  'exec 3<&0; "$@" </dev/null & pid=$!; echo "{\\"pid\\":$pid}"; (cat <&3 >/dev/null; kill -KILL "$pid" 2>/dev/null) & wait "$pid"';
const COMPILE_CACHE = join(tmpdir(), "lockedcron-compile-cache");
const NODE = fileURLToPath(new URL("../../node_modules/.bin/node", import.meta.url));
const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const FAULTY_MAIN = fileURLToPath(new URL("faulty-main.ts", import.meta.url));

export async function startReplica(o: ReplicaOptions): Promise<Replica> {
  const port = await freePort();
  const argv = [
    NODE,
    o.faults === undefined ? MAIN : FAULTY_MAIN,
    `--redis=${o.redis.join(",")}`,
    `--kubeconfig=${o.kubeconfig}`,
    `--namespace=${o.namespace ?? "lockedcron-system"}`,
    `--replica=${o.name}`,
    `--bind-address=127.0.0.1:${port}`,
    ...(o.flags ?? []),
  ];
  const env = {
    // Compiled code is kept for the next replica: it halves the time to start.
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    ...process.env,
    ...o.env,
    ...(o.faults === undefined ? {} : { [FAULTS_VARIABLE]: JSON.stringify(o.faults) }),
  };
  const guard = spawn("sh", ["-c", GUARD, "--", ...argv], { env, stdio: ["pipe", "pipe", "pipe"] });
  const exited = once(guard, "exit").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
  }));
  const lines: LogLine[] = [];
  const listeners = new Set<(line: LogLine) => void>();
  const rest: string[] = [];
  let pid = 0;

  function take(text: string): void {
    let line: LogLine;
    try {
      line = JSON.parse(text) as LogLine;
    } catch {
      rest.push(text);
      return;
    }
    lines.push(line);
    o.onLine?.(line);
    for (const listener of listeners) listener(line);
  }
  createInterface({ input: guard.stderr }).on("line", (text) => rest.push(text));
  const out = createInterface({ input: guard.stdout });
  const [first] = (await once(out, "line")) as [string];
  pid = (JSON.parse(first) as { pid: number }).pid;
  out.on("line", take);

  function send(signal: NodeJS.Signals): void {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended already.
    }
  }

  const replica: Replica = {
    name: o.name,
    pid,
    url: `http://127.0.0.1:${port}`,
    lines,
    text: () => rest.join("\n"),
    exited,
    alive: () => guard.exitCode === null && guard.signalCode === null,
    line(what, holds, timeoutMs = 60_000) {
      const past = lines.find(holds);
      if (past !== undefined) return Promise.resolve(past);
      return new Promise((resolve, reject) => {
        const fail = (why: string): void => {
          listeners.delete(listener);
          clearTimeout(timer);
          const last = lines.slice(-5).map((line) => JSON.stringify(line));
          reject(new Error(`${o.name}: ${why}: ${what}\n${last.join("\n")}\n${rest.join("\n")}`));
        };
        const listener = (line: LogLine): void => {
          if (!holds(line)) return;
          listeners.delete(listener);
          clearTimeout(timer);
          resolve(line);
        };
        const timer = setTimeout(() => fail(`not within ${timeoutMs} ms`), timeoutMs);
        listeners.add(listener);
        void exited.then(() => fail("ended before"));
      });
    },
    async ready(timeoutMs = 90_000) {
      const until = performance.now() + timeoutMs;
      for (;;) {
        const text = await replica.readyz().catch((error: unknown) => String(error));
        if (text.includes("readyz check passed")) return;
        if (!replica.alive() || performance.now() > until) {
          throw new Error(`${o.name} is not ready:\n${text}\n${rest.join("\n")}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    readyz: async () => (await fetch(`${replica.url}/readyz?verbose`)).text(),
    metrics: async () => (await fetch(`${replica.url}/metrics`)).text(),
    pause: () => send("SIGSTOP"),
    resume: () => send("SIGCONT"),
    signal: send,
    async kill() {
      send("SIGKILL");
      await exited;
    },
    async stop() {
      send("SIGCONT");
      send("SIGTERM");
      return (await exited).code;
    },
    async [Symbol.asyncDispose]() {
      await replica.kill();
    },
  };
  return replica;
}
