/** A name that leads to another server from one moment to the next, as that of a pod that was replaced. */
import dns from "node:dns";
import { afterEach, expect, it, vi } from "vitest";
import { until } from "../redis/facts.ts";
import { startProxy } from "../redis/proxy.ts";
import { freshKey, freshValue, redisBed } from "./fixture.ts";

const bed = redisBed(4);
const LEASE_MS = 3_000;
const NAME = "redis-0.test";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The resolver of this process knows the name; no real one can be made to without rights on the machine. */
function resolveTo(address: () => string): void {
  const real = dns.lookup;
  vi.spyOn(dns, "lookup").mockImplementation(((
    name: string,
    options: object,
    done: (...found: unknown[]) => void,
  ) => {
    if (name !== NAME) Reflect.apply(real, dns, [name, options, done]);
    else if ("all" in options && options.all === true)
      done(null, [{ address: address(), family: 4 }]);
    else done(null, address(), 4);
  }) as typeof dns.lookup);
}

it("a node is found at its new address, and is quarantined there", async () => {
  const [old, replacement, ...others] = bed.servers;
  // The replacement has the port of the old one, at an address of its own.
  const proxy = await startProxy(() => replacement!.port, "127.0.0.1", {
    host: "127.0.0.2",
    port: old!.port,
  });
  let address = "127.0.0.1";
  resolveTo(() => address);
  try {
    const nodes = [`redis://${NAME}:${old!.port}`, ...others.map(({ url }) => url)];
    const lock = await bed.lock({
      heartbeatMs: 100,
      reconnectMaxMs: 100,
      maxLeaseMs: LEASE_MS,
      nodes,
    });
    await until("all up", () => lock.health().up === 3);
    const before = lock.health().nodes[0]?.facts?.runId;
    address = "127.0.0.2";
    await old!.kill();
    await until(
      "another server",
      () => lock.health().nodes[0],
      (seen) => seen?.state === "quarantined" && seen.facts?.runId !== before,
    );
    expect(String(await replacement!.command("INFO", "server"))).toContain(
      lock.health().nodes[0]!.facts!.runId,
    );
    expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
  } finally {
    await proxy.close();
  }
});

it("a name that leads nowhere is away, and the others go on", async () => {
  const [first, ...others] = bed.servers;
  const nodes = [
    `redis://nowhere.invalid:${first!.port}`,
    ...others.slice(0, 2).map(({ url }) => url),
  ];
  const lock = await bed.lock({ heartbeatMs: 100, reconnectMaxMs: 100, nodes });
  expect(lock.health().nodes[0]).toMatchObject({
    state: "down",
    reason: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
  });
  expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
});
