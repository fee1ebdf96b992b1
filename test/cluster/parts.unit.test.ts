import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, mkdir, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { commandLine } from "./component.ts";
import { withFileLock, withFolderLock } from "./flock.ts";
import { overlaps } from "./network.ts";
import { reserving } from "./reservations.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "lc-"));
  vi.stubEnv("TMPDIR", dir);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true, force: true });
});

test("flags: null is left out, a list repeats the flag", () => {
  expect(commandLine({ a: 1, b: null, c: ["x", "y"], d: false })).toEqual([
    "--a=1",
    "--c=x",
    "--c=y",
    "--d=false",
  ]);
});

test.each([
  ["10.200.3.0/24", "10.200.3.254", true],
  ["10.0.0.0/8", "10.210.0.0/16", true],
  ["10.210.0.0/16", "10.0.0.0/8", true],
  ["10.200.3.0/24", "10.200.4.0/24", false],
  ["192.0.2.2", "192.0.2.2", true],
])("address ranges %s and %s overlap: %s", (one, other, expected) => {
  expect(overlaps(one, other)).toBe(expected);
});

describe("file locks", () => {
  test("admit one after the other", async () => {
    const events: string[] = [];
    let waited = (): void => {};
    const second = new Promise<void>((resolve) => (waited = resolve));
    const path = join(dir, "lock");
    await withFileLock(path, async () => {
      const other = withFileLock(path, async () => void events.push("second"), waited);
      await second; // it waits by now
      events.push("first");
      return { other };
    }).then(({ other }) => other);
    expect(events).toEqual(["first", "second"]);
  });

  test("are free again after a failure", async () => {
    const path = join(dir, "lock");
    const failing = withFileLock(path, async () => {
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await withFileLock(path, async () => "mine")).toBe("mine");
  });

  test("on a folder that is not there: nothing runs, nothing is made", async () => {
    const path = join(dir, "none");
    expect(await withFolderLock(path, async () => "ran")).toBeUndefined();
    expect(existsSync(path)).toBe(false);
  });
});

describe("reservations", () => {
  const take = (holder: string, count: number) =>
    reserving(async (reservations) => {
      await mkdir(holder, { recursive: true });
      return reservations.take("port", holder, count, [1, 2, 3], (port) => port !== 2);
    });

  test("skip what is held or not free, and last as long as the holder's folder", async () => {
    const [one, two] = [join(dir, "one"), join(dir, "two")];
    expect(await take(one, 1)).toEqual([1]);
    expect(await take(two, 2)).toEqual([3]);
    await rm(one, { recursive: true });
    expect(await take(two, 1)).toEqual([1]);
  });

  test("of a folder that is gone are forgotten", async () => {
    const held = (): string[] =>
      readdirSync(join(dir, `lockedcron-${userInfo().uid}-reserved`)).toSorted();
    const [one, two] = [join(dir, "one"), join(dir, "two")];
    await take(one, 1);
    await take(two, 1);
    await rm(one, { recursive: true });
    await reserving((reservations) => reservations.prune());
    expect(held()).toEqual(["lock", "port-3"]);
  });
});
