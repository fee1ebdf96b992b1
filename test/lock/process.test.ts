import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, it } from "vitest";
import { freshKey, redisBed } from "./fixture.ts";

const bed = redisBed(5);
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

async function holder(key: string, leaseMs: number, watchdog: boolean) {
  const program = new URL("paused-client.ts", import.meta.url).pathname;
  const urls = bed.servers.map(({ url }) => url);
  const child = spawn(
    process.execPath,
    [program, key, String(leaseMs), String(watchdog), ...urls],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () =>
    JSON.parse(String((await lines.next()).value)) as { isHeld: boolean; aborted: boolean };
  expect(await line()).toMatchObject({ isHeld: true, aborted: false });
  return { child, line };
}

describe("a holder in another process", () => {
  it("that is stopped for longer than its lease knows in the first turn after it that it lost", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    const { child, line } = await holder(key, 1_500, true);
    child.kill("SIGSTOP");
    const next = await lock.acquire(key, { waitMs: 20_000, retryIntervalMs: 20 });
    child.stdin.write("?\n");
    child.kill("SIGCONT");
    expect(await line()).toMatchObject({ isHeld: false, aborted: true });
    expect(next.isHeld()).toBe(true);
    await next.release();
  });

  it("that is killed frees the key by the end of its lease", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    const { child } = await holder(key, 1_500, true);
    child.kill("SIGKILL");
    await once(child, "exit");
    const next = await lock.acquire(key, { waitMs: 20_000, retryIntervalMs: 20 });
    expect(next.isHeld()).toBe(true);
    await next.release();
  });

  it("that lives keeps the key for as long as it likes", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    const { child, line } = await holder(key, 2_000, true);
    await expect(lock.acquire(key, { waitMs: 4_500, retryIntervalMs: 50 })).rejects.toMatchObject({
      reason: "held",
    });
    child.stdin.write("?\n");
    expect(await line()).toMatchObject({ isHeld: true, aborted: false });
  });
});
