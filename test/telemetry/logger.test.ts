import { Writable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/clock.ts";
import { manualTime } from "../controller/manual-time.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { LoggerOptions } from "../../src/telemetry/logger.ts";
import { createRedactor } from "../../src/telemetry/redact.ts";

const NOON = Date.UTC(2026, 0, 2, 12);
const clock: Clock = { ...systemClock, now: () => NOON };

function memory(options: Partial<LoggerOptions> = {}) {
  const chunks: string[] = [];
  const output = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  const time = manualTime();
  const log = createLogger({
    level: "info",
    format: "json",
    replica: "replica-1",
    clock,
    timers: time.timers,
    output,
    ...options,
  });
  onTestFinished(() => log.close());
  /** What was written ten milliseconds later. */
  const lines = async (): Promise<string[]> => {
    await time.pass(10);
    return chunks.join("").split("\n").slice(0, -1);
  };
  const parsed = async (): Promise<Record<string, unknown>[]> =>
    (await lines()).map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log, output, chunks, lines, parsed, time };
}

describe("as JSON", () => {
  it("writes one line per event, head first", async () => {
    const { log, lines } = memory();
    log.info("claimed the tick", {
      key: "ns/name",
      event: "TickClaimed",
      tick: new Date(NOON),
      token: 7,
      next: "create the Job",
    });
    expect(await lines()).toEqual([
      '{"time":"2026-01-02T12:00:00.000Z","level":"info","replica":"replica-1",' +
        '"event":"TickClaimed","msg":"claimed the tick","key":"ns/name",' +
        '"tick":"2026-01-02T12:00:00.000Z","token":7,"next":"create the Job"}',
    ]);
  });

  it("has an event on every line", async () => {
    const { log, parsed } = memory();
    log.warn("hm");
    expect(await parsed()).toMatchObject([{ level: "warn", event: "Log", msg: "hm" }]);
  });

  it("leaves out what is below the level", async () => {
    const { log, parsed } = memory({ level: "warn" });
    log.debug("no");
    log.info("no");
    log.warn("yes");
    log.error("yes too");
    expect((await parsed()).map((line) => line.msg)).toEqual(["yes", "yes too"]);
  });

  it("keeps a message with line breaks on one line", async () => {
    const { log, lines } = memory();
    log.info("a\nb\r\nc", { x: "1\n2" });
    expect(await lines()).toHaveLength(1);
  });

  it("lets no field replace the head of the line", async () => {
    const { log, parsed } = memory();
    log.info("real", { msg: "forged", level: "error", replica: "forged", message: "other" });
    expect(await parsed()).toEqual([
      expect.objectContaining({
        msg: "real",
        level: "info",
        replica: "replica-1",
        msg_: "forged",
        level_: "error",
        replica_: "forged",
        message: "other",
      }),
    ]);
  });

  it("adds the fields of a child to its lines, its own last", async () => {
    const { log, parsed } = memory();
    const child = log.child({ key: "ns/a", event: "Reconcile" }).child({ attempt: 1 });
    child.info("x", { attempt: 2 });
    log.info("y");
    expect((await parsed())[0]).toMatchObject({ key: "ns/a", event: "Reconcile", attempt: 2 });
    expect((await parsed())[1]).not.toHaveProperty("key");
  });

  it("shows the stack of an error at level debug only", async () => {
    const [info, debug] = [memory(), memory({ level: "debug" })];
    for (const { log } of [info, debug]) log.error("failed", { error: new Error("boom") });
    expect(await info.parsed()).toMatchObject([{ error: { message: "boom" } }]);
    expect((await info.lines())[0]).not.toContain("stack");
    expect((await debug.lines())[0]).toContain("logger.test.ts");
  });
});

describe("secrets", () => {
  it.each(["json", "text"] as const)("reach no line as %s, by no way in", async (format) => {
    const redact = createRedactor(["known-hush"]);
    const { log, lines } = memory({ format, redact, level: "debug" });
    const error = new Error("redis://:hush@a/ known-hush");
    log.error("failed: Bearer hush at redis://:hush@a", {
      event: "known-hush",
      password: "hush",
      "known-hush": 1,
      error,
      nested: { headers: { authorization: "hush" }, text: "password=hush" },
    });
    log.child({ apiKey: "hush" }).info("child");
    expect(await lines()).toHaveLength(2);
    expect((await lines()).join("\n")).not.toContain("hush");
  });
});

describe("as text", () => {
  it("is for people: instant, level, event, message, fields", async () => {
    const { log, lines } = memory({ format: "text" });
    log.warn("lost the lock", { event: "LockLost", key: "ns/a", why: "two words", n: 3 });
    expect(await lines()).toEqual([
      "2026-01-02T12:00:00.000Z WARN  LockLost lost the lock " +
        'key=ns/a why="two words" n=3 replica=replica-1',
    ]);
  });

  it("lets neither line breaks nor escape sequences through", async () => {
    const { log, lines } = memory({ format: "text" });
    log.info("a\nERROR forged", { x: "\u001B[2J", "y\nz": 1 });
    expect(await lines()).toHaveLength(1);
    expect((await lines())[0]).not.toContain("\u001B");
  });
});

describe("the lines of ten milliseconds", () => {
  it("are written in one piece, in their order", async () => {
    const { log, chunks, parsed, time } = memory();
    log.info("one");
    await time.pass(9);
    log.info("two");
    log.info("three");
    expect(chunks).toEqual([]);
    expect((await parsed()).map((line) => line.msg)).toEqual(["one", "two", "three"]);
    expect(chunks).toHaveLength(1);
  });

  it.each(["warn", "error"] as const)("are written at once with one at level %s", (level) => {
    const { log, chunks } = memory();
    log.info("before");
    log[level]("it goes wrong");
    expect(chunks.join("").match(/before|it goes wrong/g)).toEqual(["before", "it goes wrong"]);
  });

  it("are written when the process ends meanwhile", () => {
    const before = process.listeners("exit");
    const { log, chunks } = memory();
    log.info("last words");
    const added = process.listeners("exit").filter((listener) => !before.includes(listener));
    for (const listener of added) listener(0);
    expect(chunks.join("")).toContain("last words");
  });
});

describe("close", () => {
  it("hands every line over, drops later ones and may be called twice", async () => {
    const { log, parsed } = memory();
    for (let i = 0; i < 100; i++) log.info(String(i));
    await log.close();
    log.info("late");
    await log.close();
    expect(await parsed()).toHaveLength(100);
  });

  it("survives an output whose reader went away", async () => {
    const broken = new Writable({
      write: (_chunk, _encoding, done) =>
        done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })),
    });
    const log = createLogger({ level: "info", format: "json", replica: "r", output: broken });
    const failed = new Promise((resolve) => broken.once("close", resolve));
    log.info("one");
    await failed;
    log.info("two");
    await expect(log.close()).resolves.toBeUndefined();
  });
});

it("closes although its reader stands still", async () => {
  const output = new Writable({ write: () => undefined });
  const log = createLogger({ level: "info", format: "json", replica: "a", output });
  for (let i = 0; i < 100; i++) log.info("a line");
  await log.close();
  expect(output.writableLength).toBeGreaterThan(0);
});
