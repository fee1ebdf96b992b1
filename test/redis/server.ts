import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { redisBinaries } from "./binaries.ts";

export interface RedisServerOptions {
  /** redis.conf directives as on the command line: ["--requirepass", "x"] */
  readonly args?: readonly string[];
  /** default: a free one */
  readonly port?: number;
  /** user and password for `command` */
  readonly username?: string;
  readonly password?: string;
  /** tcp is off and TLS on: needs cert files in `args` */
  readonly program?: "server" | "sentinel";
  /** first argument: a config file (sentinels need one) */
  readonly configFile?: string;
  /** where its data folder is made; default: the folder for temporary files */
  readonly within?: string;
}

/** A real redis-server (or sentinel) process on loopback, with its data in a folder of its own. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  readonly dir: string;
  readonly pid: number;
  /** Runs one command on a connection of its own. */
  command(...words: [string, ...(string | number)[]]): Promise<unknown>;
  /** Cuts all other connections, logged in with this password. */
  kickClients(password: string): Promise<void>;
  /** SIGSTOP: TCP connects still succeed, nothing is answered. */
  pause(): void;
  resume(): void;
  /** SIGKILL, and waits until it is gone. */
  kill(): Promise<void>;
  /** Starts again on the same port; with its files, if it has written any. */
  start(): Promise<void>;
  alive(): boolean;
  /** kill + start. */
  restart(): Promise<void>;
  /** Kill, forget all data, start: an empty server on the same port. */
  wipe(): Promise<void>;
  /** Kill and remove everything. */
  stop(): Promise<void>;
}

/**
 * Ports lie below those that the kernel gives to clients and to `listen(0)` (32768 and up), and below those of clusters, so
 * that nobody takes one by chance while its server is down. Test files that run at the same time have a block each: clients of
 * one that still try a server which is gone must not find another's in its place.
 */
const FIRST_PORT = 10_000;
const BLOCKS = 10;
const BLOCK = 1_000;
const block = Number(process.env.VITEST_POOL_ID ?? process.pid) % BLOCKS;
let ports = Math.floor(Math.random() * BLOCK);

/** A port on which nobody listens now. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < BLOCK; tries++) {
    const port = FIRST_PORT + block * BLOCK + (ports++ % BLOCK);
    if (await isFree(port)) return port;
  }
  throw new Error(`no port of block ${block} from ${FIRST_PORT} is free`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  const free = await new Promise<boolean>((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(true));
  });
  if (free) await new Promise((resolve) => probe.close(resolve));
  return free;
}

/**
 * Starts the program under a shell that kills it when our end of the pipe closes: a test run that is SIGKILLed leaves
 * no server behind.
 */
const GUARD = '"$@" & pid=$!; echo "$pid"; cat >/dev/null; kill -KILL "$pid" 2>/dev/null';

async function spawnGuarded(
  argv: readonly string[],
): Promise<{ guard: ChildProcess; pid: number }> {
  const guard = spawn("sh", ["-c", GUARD, "--", ...argv], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: guard.stdout });
  const [line] = (await once(lines, "line")) as [string];
  lines.on("line", () => undefined);
  return { guard, pid: Number(line) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie is not alive; its parent (the guard) has not read its end yet. But as long as threads of it are still
    // ending, its port is taken.
    const zombie = /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    return !zombie || readdirSync(`/proc/${pid}/task`).length > 1;
  } catch {
    return false;
  }
}

export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const binaries = await redisBinaries();
  const dir = mkdtempSync(join(options.within ?? tmpdir(), "lockedcron-redis-"));
  let port = options.port ?? (await freePort());
  let guard: ChildProcess | undefined;
  let pid = 0;

  function argv(): string[] {
    const sentinel = options.program === "sentinel";
    return [
      sentinel ? binaries.sentinel : binaries.server,
      ...(options.configFile === undefined ? [] : [options.configFile]),
      "--port",
      String(port),
      "--dir",
      dir,
      "--logfile",
      join(dir, "log"),
      ...(sentinel ? [] : ["--save", "", "--appendonly", "no", "--enable-debug-command", "local"]),
      "--bind",
      "127.0.0.1",
      ...(options.args ?? []),
      ...(sentinel ? ["--sentinel"] : []),
    ];
  }

  async function command(...words: [string, ...(string | number)[]]): Promise<unknown> {
    return commandAs(options.password, words);
  }

  async function commandAs(
    password: string | undefined,
    words: [string, ...(string | number)[]],
  ): Promise<unknown> {
    const { username } = options;
    const client = new Redis({
      port,
      host: "127.0.0.1",
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      lazyConnect: true,
      retryStrategy: null,
      disconnectTimeout: 0,
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
    });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await client.call(...words);
    } finally {
      client.disconnect();
    }
  }

  async function answers(): Promise<boolean> {
    try {
      await command("PING");
      return true;
    } catch (error) {
      // Answers in its own way (no password given, still loading, too many clients): it runs.
      return /NOAUTH|WRONGPASS|NOPERM|LOADING|unknown command|max number/.test(
        (error as Error).message,
      );
    }
  }

  async function start(): Promise<void> {
    ({ guard, pid } = await spawnGuarded(argv()));
    while (!(await answers())) {
      if (!isAlive(pid)) {
        throw new Error(`redis-server on port ${port} ended:\n${tail(join(dir, "log"))}`);
      }
      await sleep(5);
    }
  }

  async function kill(): Promise<void> {
    const ending = guard;
    if (ending === undefined) return;
    guard = undefined;
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
    while (isAlive(pid)) await sleep(2);
    ending.stdin?.end();
    // By a signal, when Ctrl-C reached it as well.
    if (ending.exitCode === null && ending.signalCode === null) await once(ending, "exit");
  }

  const server: RedisServer = {
    get port() {
      return port;
    },
    get url() {
      return `redis://127.0.0.1:${port}`;
    },
    dir,
    get pid() {
      return pid;
    },
    command,
    async kickClients(password) {
      await commandAs(password, ["CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal"]);
    },
    pause: () => void process.kill(pid, "SIGSTOP"),
    resume() {
      if (isAlive(pid)) process.kill(pid, "SIGCONT");
    },
    alive: () => isAlive(pid),
    kill,
    start,
    async restart() {
      await kill();
      await start();
    },
    async wipe() {
      await kill();
      for (const name of ["dump.rdb", "appendonlydir"]) {
        rmSync(join(dir, name), { recursive: true, force: true });
      }
      await start();
    },
    async stop() {
      await kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  try {
    await start();
  } catch (error) {
    await kill();
    if (options.port !== undefined || !/in use/i.test((error as Error).message)) throw error;
    // Somebody took the free port between our look and the server's bind.
    port = await freePort();
    await start();
  }
  return server;
}

function tail(file: string): string {
  try {
    return readFileSync(file, "utf8").split("\n").slice(-15).join("\n");
  } catch {
    return "(no log)";
  }
}

/** `count` independent servers, started side by side. */
export async function startRedisNodes(
  count: number,
  options: RedisServerOptions = {},
): Promise<RedisServer[]> {
  return Promise.all(Array.from({ length: count }, () => startRedis(options)));
}
