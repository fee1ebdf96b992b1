/** Masters under Sentinel as the operator's own settings give them: --redis-config, `lockedcron check`. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { loadConfig } from "../../src/config.ts";
import { openLock } from "../../src/operator/locks.ts";
import { call } from "../cli/call.ts";
import { until } from "../redis/facts.ts";
import { type SentinelGroup, startSentinelGroup } from "../redis/sentinel.ts";
import { type RedisServer, startRedis } from "../redis/server.ts";
import { freshKey, freshValue } from "./fixture.ts";

const USER = "cid";
let group: SentinelGroup;
let others: RedisServer[];
let folder: string;

/** From now on the user has this password; connections by another one are cut. */
async function admit(servers: readonly RedisServer[], password: string): Promise<void> {
  for (const server of servers) {
    await server.command("ACL", "DELUSER", USER);
    await server.command("ACL", "SETUSER", USER, "on", `>${password}`, "~*", "+@all");
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lockedcron-config-"));
  const own = "word-of-another-node";
  [group, ...others] = await Promise.all([
    startSentinelGroup("cron"),
    startRedis({ args: ["--requirepass", own], password: own }),
    startRedis(),
  ]);
  await admit(group.servers, "word-of-the-master");
  await admit(group.sentinels, "word-of-the-sentinels");
  file("master.password", "word-of-the-master\n");
  file("sentinel.password", "word-of-the-sentinels\n");
  file("own.password", own);
});
afterAll(async () => {
  await Promise.all([group.stop(), ...others.map((server) => server.stop())]);
  rmSync(folder, { recursive: true });
});

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function settings(changes: object = {}): string[] {
  const sentinel = {
    masterName: group.masterName,
    sentinels: group.sentinels.map(({ url }) => url),
    username: USER,
    passwordFile: "master.password",
    sentinelUsername: USER,
    sentinelPasswordFile: "sentinel.password",
    ...changes,
  };
  const [locked, open] = others.map(({ url }) => url);
  const nodes = [sentinel, { url: locked, passwordFile: "own.password" }, open];
  return ["--redis-config", file("redis.yaml", stringify({ nodes }))];
}

function opened() {
  const loaded = loadConfig({ argv: settings(), env: {} });
  if (loaded.kind !== "config") throw new Error("text" in loaded ? loaded.text : loaded.kind);
  return openLock(loaded.config);
}

const state = (lock: ReturnType<typeof opened>) => lock.health().nodes[0];

it("each node lets in by its own credentials, and a failover is followed", async () => {
  await using lock = opened();
  await until(
    "all up",
    () => lock.health().up,
    (up) => up === 3,
  );
  const [key, value] = [freshKey(), freshValue()];
  expect((await lock.tryAcquire(key, value, 5_000)).outcome).toBe("acquired");
  const master = await group.master();
  await until(
    "a vote of the master",
    () => master.command("GET", key),
    (seen) => seen === value,
  );

  const before = state(lock)?.facts?.runId;
  await group.failover();
  await until(
    "another master, in quarantine",
    () => state(lock),
    (seen) => seen?.state === "quarantined" && seen.facts?.runId !== before,
  );
  expect(state(lock)?.node).toBe("cron");
  expect((await lock.tryAcquire(freshKey(), freshValue(), 5_000)).outcome).toBe("acquired");
});

it("the passwords of master and sentinels may change while it runs", async () => {
  await using lock = opened();
  const inside = (seen = state(lock)) => /^(up|quarantined)$/.test(seen?.state ?? "");
  await until("let in", () => inside());
  await admit(group.sentinels, "another-for-sentinels");
  await admit(group.servers, "another-for-master");
  const refused = await until(
    "refused by the sentinels",
    () => state(lock),
    (seen) => seen?.reason === "WRONGPASS" && /sentinel/.test(seen.message ?? ""),
  );
  expect(JSON.stringify(refused)).not.toMatch(/word-of|another-for/);
  file("sentinel.password", "another-for-sentinels");
  await until(
    "refused by the master",
    () => state(lock),
    (seen) => seen?.reason === "WRONGPASS" && !/sentinel/.test(seen.message ?? ""),
  );
  file("master.password", "another-for-master");
  await until("let in again", () => inside());
});

it("lockedcron check tells whether they can be used, and what is wrong", async () => {
  // There is no API server; the lines about it are not of interest here.
  const check = (changes: object) =>
    call(["check", ...settings(changes), "--context=nowhere", "--kube-timeout-ms=500"]);
  const good = await check({});
  expect(good.out).toMatch(/^ok {4}lock: acquired and released/);

  const wrong = await check({ masterName: "corn", name: "cron" });
  expect(wrong).toMatchObject({ code: 1, out: "" });
  expect(wrong.error).toMatch(
    /^FAIL {2}lock: .*nodes\[0\].*cron NOMASTER: no sentinel knows a master "corn"/,
  );

  const bad = await check({ masterName: 7 });
  expect(bad.code).toBe(2);
  expect(bad.error).toContain('--redis-config nodes[0].masterName "7": is no text');
});
