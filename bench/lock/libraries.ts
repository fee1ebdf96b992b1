import { createHash, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { createQuorumLock } from "../../src/lock/index.ts";

/** One acquire and one release of a key that nobody else wants. */
export type Cycle = (key: string) => Promise<void>;

export interface Library {
  readonly name: string;
  /** Connects to the five servers. */
  start(ports: readonly number[]): Promise<Cycle>;
}

const LEASE_MS = 10_000;
// The peers are in the bench's own package; they need not be there for the types of the rest.
const peer = createRequire(new URL("../package.json", import.meta.url));

async function connect(ports: readonly number[]): Promise<Redis[]> {
  const clients = ports.map((port) => new Redis({ port, host: "127.0.0.1" }));
  for (const client of clients) client.on("error", () => undefined);
  await Promise.all(clients.map((client) => client.ping()));
  return clients;
}

const DELETE =
  "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
const DELETE_SHA = createHash("sha1").update(DELETE).digest("hex");

function majority(calls: Promise<unknown>[], needed: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let yes = 0;
    let no = 0;
    const fail = () => {
      no += 1;
      if (no > calls.length - needed) reject(new Error("no quorum"));
    };
    for (const call of calls) {
      call.then((answer) => {
        if (answer === null || answer === 0) fail();
        else if ((yes += 1) === needed) resolve();
      }, fail);
    }
  });
}

/** What any Redlock must do at least: SET NX PX everywhere, EVALSHA compare-and-delete everywhere, 3 of 5 each. */
const raw: Library = {
  name: "raw",
  async start(ports) {
    const clients = await connect(ports);
    await Promise.all(clients.map((client) => client.call("SCRIPT", "LOAD", DELETE)));
    for (const client of clients) client.options.enableOfflineQueue = false;
    return async (key) => {
      const value = randomUUID();
      await majority(
        clients.map((client) => client.set(key, value, "PX", LEASE_MS, "NX")),
        3,
      );
      await majority(
        clients.map((client) => client.evalsha(DELETE_SHA, 1, key, value)),
        3,
      );
    };
  },
};

const ours: Library = {
  name: "lockedcron",
  async start(ports) {
    const lock = createQuorumLock({ nodes: ports.map((port) => `redis://127.0.0.1:${port}`) });
    await lock.ready();
    return async (key) => {
      const held = await lock.acquire(key, { leaseMs: LEASE_MS });
      await held.release();
    };
  },
};

/** The same by value, as the operator uses it: no handle, no watch over the deadline. */
const oursByValue: Library = {
  name: "lockedcron by value",
  async start(ports) {
    const lock = createQuorumLock({ nodes: ports.map((port) => `redis://127.0.0.1:${port}`) });
    await lock.ready();
    return async (key) => {
      const value = randomUUID();
      const result = await lock.tryAcquire(key, value, LEASE_MS);
      if (result.outcome !== "acquired") throw new Error(result.outcome);
      await lock.release(key, value, LEASE_MS);
    };
  },
};

interface RedlockLock {
  release?(): Promise<unknown>;
  unlock?(): Promise<unknown>;
}

const redlock5: Library = {
  name: "redlock 5.0.0-beta.2",
  async start(ports) {
    const { default: Redlock } = peer("redlock") as {
      default: new (
        clients: Redis[],
        options: object,
      ) => {
        acquire(keys: string[], ms: number): Promise<RedlockLock>;
        on(event: string, listener: () => void): void;
      };
    };
    const redlock = new Redlock(await connect(ports), { retryCount: 0 });
    redlock.on("error", () => undefined);
    return async (key) => {
      const lock = await redlock.acquire([key], LEASE_MS);
      await lock.release?.();
    };
  },
};

const redlock4: Library = {
  name: "redlock 4.2.0",
  async start(ports) {
    const Redlock = peer("redlock4") as new (
      clients: Redis[],
      options: object,
    ) => {
      lock(key: string, ms: number): Promise<RedlockLock>;
      on(event: string, listener: () => void): void;
    };
    const redlock = new Redlock(await connect(ports), { retryCount: 0 });
    redlock.on("clientError", () => undefined);
    return async (key) => {
      const lock = await redlock.lock(key, LEASE_MS);
      await lock.unlock?.();
    };
  },
};

const redlockUniversal: Library = {
  name: "redlock-universal 0.8.5",
  async start(ports) {
    const { createRedlock, IoredisAdapter } = peer("redlock-universal") as {
      createRedlock(config: object): {
        acquire(): Promise<unknown>;
        release(handle: unknown): Promise<unknown>;
      };
      IoredisAdapter: new (client: Redis) => unknown;
    };
    const adapters = (await connect(ports)).map((client) => new IoredisAdapter(client));
    return async (key) => {
      const lock = createRedlock({ adapters, key, ttl: LEASE_MS, quorum: 3, retryAttempts: 0 });
      await lock.release(await lock.acquire());
    };
  },
};

const redisSemaphore: Library = {
  name: "redis-semaphore 5.8.0",
  async start(ports) {
    const { RedlockMutex } = peer("redis-semaphore") as {
      RedlockMutex: new (
        clients: Redis[],
        key: string,
        options: object,
      ) => { acquire(): Promise<void>; release(): Promise<void> };
    };
    const clients = await connect(ports);
    return async (key) => {
      const mutex = new RedlockMutex(clients, key, { lockTimeout: LEASE_MS, refreshInterval: 0 });
      await mutex.acquire();
      await mutex.release();
    };
  },
};

export const LIBRARIES: readonly Library[] = [
  raw,
  ours,
  oursByValue,
  redlock5,
  redlock4,
  redlockUniversal,
  redisSemaphore,
];
