import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { until } from "../redis/facts.ts";
import { freePort, startRedis } from "../redis/server.ts";
import { makeCertificate } from "../redis/tls.ts";
import { allUp, freshKey, freshValue, LEASE_MS, redisBed } from "./fixture.ts";

const bed = redisBed(2);
const FAST = { nodeTimeoutMs: 500, heartbeatMs: 100, reconnectMaxMs: 50 };
const others = () => bed.servers.map(({ url }) => url);

describe("TLS", () => {
  it.each([
    ["to the right host with the right CA", "127.0.0.1", 2, true, "up", undefined],
    ["with an unknown CA", "127.0.0.1", 2, false, "down", /SELF_SIGNED|UNABLE_TO_VERIFY/],
    ["with a certificate for another host", "elsewhere.example", 2, true, "down", /ALTNAME/],
    ["with a certificate that has expired", "127.0.0.1", -1, true, "down", /CERT_HAS_EXPIRED/],
  ])("%s", async (_, host, days, trusted, state, reason) => {
    const certificate = makeCertificate(host, days);
    const tlsPort = await freePort();
    const server = await startRedis({ args: certificate.serverArgs(tlsPort) });
    try {
      const node = {
        url: `rediss://127.0.0.1:${tlsPort}`,
        tls: trusted ? { ca: certificate.ca } : {},
      };
      const lock = await bed.lock({ ...FAST, nodes: [node, ...others()] });
      const seen = lock.health().nodes[0];
      expect(seen?.state).toBe(state);
      expect(seen?.reason ?? "").toMatch(reason ?? /^$/);
      expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
    } finally {
      await server.stop();
      certificate.remove();
    }
  });

  it.each([
    ["trusted", true, "up", /^$/],
    ["not trusted", false, "down", /SENTINEL/],
  ])("to a sentinel and by it to a master: %s", async (_, trusted, state, reason) => {
    const certificate = makeCertificate("127.0.0.1", 2);
    const [masterPort, sentinelPort] = [await freePort(), await freePort()];
    const master = await startRedis({ args: certificate.serverArgs(masterPort) });
    const configFile = join(master.dir, "sentinel.conf");
    writeFileSync(configFile, `sentinel monitor safe 127.0.0.1 ${masterPort} 1\n`);
    const args = [...certificate.serverArgs(sentinelPort), "--tls-replication", "yes"];
    const sentinel = await startRedis({ program: "sentinel", configFile, args });
    try {
      const ca = trusted ? { ca: certificate.ca } : {};
      const node = {
        sentinels: [`rediss://127.0.0.1:${sentinelPort}`],
        masterName: "safe",
        tls: { ca: certificate.ca },
        sentinelTls: ca,
      };
      const lock = await bed.lock({ ...FAST, nodes: [node, ...others()] });
      const seen = lock.health().nodes[0];
      expect(seen).toMatchObject({ state });
      expect(seen?.reason ?? "").toMatch(reason);
      expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
    } finally {
      await Promise.all([sentinel.stop(), master.stop()]);
      certificate.remove();
    }
  });

  it("spoken to a server that does not is named", async () => {
    const [plain, other] = others();
    const lock = await bed.lock({
      ...FAST,
      nodes: [plain!.replace("redis:", "rediss:"), other!, `redis://127.0.0.1:${await freePort()}`],
    });
    expect(lock.health().nodes[0]?.reason).toMatch(/ECONNRESET|EPROTO|ERR_SSL|TIMEOUT/);
  });
});

describe("password files", () => {
  it("are read anew for every connection: a rotated password is taken up", async () => {
    const server = await startRedis({ args: ["--requirepass", "old"], password: "old" });
    const passwordFile = join(server.dir, "password");
    writeFileSync(passwordFile, "old\n");
    try {
      const lock = await bed.lock({
        ...FAST,
        nodes: [{ url: server.url, passwordFile }, ...others()],
      });
      await allUp(lock);
      await server.command("CONFIG", "SET", "requirepass", "new");
      await server.kickClients("new");
      const refused = await until(
        "refused",
        () => lock.health().nodes[0],
        (n) => n?.reason === "WRONGPASS",
      );
      expect(JSON.stringify(refused)).not.toMatch(/old|new/);
      writeFileSync(passwordFile, "new\n");
      await allUp(lock);
    } finally {
      await server.stop();
    }
  });

  it("that is missing is named", async () => {
    const passwordFile = join(bed.servers[0]!.dir, "nowhere");
    rmSync(passwordFile, { force: true });
    const [one, two] = others();
    const lock = await bed.lock({
      ...FAST,
      nodes: [{ url: one!, passwordFile }, two!, `redis://127.0.0.1:${await freePort()}`],
    });
    expect(lock.health().nodes[0]).toMatchObject({ reason: "PASSWORDFILE" });
    expect(lock.health().nodes[0]?.message).toContain(passwordFile);
  });
});

describe("a server without a command", () => {
  it.each(["EVAL", "EVALSHA", "INFO"])("%s (renamed away) is named", async (name) => {
    const server = await startRedis({ args: ["--rename-command", name, `hidden-${name}`] });
    try {
      const lock = await bed.lock({ ...FAST, nodes: [server.url, ...others()] });
      const seen = lock.health().nodes[0];
      expect(seen).toMatchObject({ state: "down", reason: "NOCOMMAND" });
      expect(seen?.message).toContain(name);
    } finally {
      await server.stop();
    }
  });
});
