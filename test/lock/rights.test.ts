/** The rights that docs/lock.md names: they are enough, and each of them is missed by its name. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createQuorumLock, type QuorumLock } from "../../src/lock/index.ts";
import { type RedisServer, startRedis } from "../redis/server.ts";
import { freshKey, LEASE_MS } from "./fixture.ts";

const page = readFileSync(new URL("../../docs/lock.md", import.meta.url), "utf8");
const RIGHTS = /Rights: `([^`]+)`/.exec(page)![1]!.split(" ");
const KEYS = ["resetkeys", "~test:*", "~lockedcron:probe:*", "~fence:*"];
const ELSEWHERE = ["+select", "+client|setname"];

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

async function lockAs(user: string, rights: readonly string[], db = ""): Promise<QuorumLock> {
  await server.command("ACL", "SETUSER", user, "on", ">pw", ...KEYS, "-@all", ...rights);
  const url = server.url.replace("//", `//${user}:pw@`) + db;
  const lock = createQuorumLock({ nodes: [url] });
  await lock.check().catch(() => undefined);
  return lock;
}

it("are enough for all that a lock does", async () => {
  await using lock = await lockAs("app", [...RIGHTS, ...ELSEWHERE], "/3");
  const key = freshKey();
  await using held = await lock.acquire(key, { fencing: lock.counter() });
  expect(held.token).toBe(1n);
  await held.extend(LEASE_MS);
  expect(await lock.inspect(key)).toMatchObject({ holder: { value: held.value } });
  expect(await lock.tryLock(key)).toBeNull();
  expect(await held.release()).toBe("released");
  await lock.tryAcquire(key, "somebody", LEASE_MS);
  expect(await lock.forceRelease(key)).toMatchObject({ outcome: "released" });
  expect(lock.health().nodes[0]).toMatchObject({ state: "up", facts: { role: "master" } });
  expect(await server.command("CLIENT", "LIST")).toMatch(/user=app/);
});

it.each(RIGHTS)("%s, when it is not there, is named", async (right) => {
  const user = `without-${right.slice(1)}`;
  await using lock = await lockAs(user, [...RIGHTS.filter((one) => one !== right), ...ELSEWHERE]);
  expect(lock.health().nodes[0]).toMatchObject({ state: "down", reason: "NOPERM" });
  expect(lock.health().nodes[0]?.message).toMatch(new RegExp(`\\b${right.slice(1)}\\b`, "i"));
});
