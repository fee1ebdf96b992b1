import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/clock.ts";
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
  const log = createLogger({
    level: "info",
    format: "json",
    replica: "replica-1",
    clock,
    output,
    ...options,
  });
  const lines = (): string[] => chunks.join("").split("\n").slice(0, -1);
  const parsed = (): Record<string, unknown>[] =>
    lines().map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log, output, lines, parsed };
}

describe("as JSON", () => {
  it("writes one line per event, head first", () => {
    const { log, lines } = memory();
    log.info("claimed the tick", {
      key: "ns/name",
      event: "TickClaimed",
      tick: new Date(NOON),
      token: 7,
      next: "create the Job",
    });
    expect(lines()).toEqual([
      '{"time":"2026-01-02T12:00:00.000Z","level":"info","replica":"replica-1",' +
        '"event":"TickClaimed","msg":"claimed the tick","key":"ns/name",' +
        '"tick":"2026-01-02T12:00:00.000Z","token":7,"next":"create the Job"}',
    ]);
  });

  it("has an event on every line", () => {
    const { log, parsed } = memory();
    log.warn("hm");
    expect(parsed()).toMatchObject([{ level: "warn", event: "Log", msg: "hm" }]);
  });

  it("leaves out what is below the level", () => {
    const { log, parsed } = memory({ level: "warn" });
    log.debug("no");
    log.info("no");
    log.warn("yes");
    log.error("yes too");
    expect(parsed().map((line) => line.msg)).toEqual(["yes", "yes too"]);
  });

  it("keeps a message with line breaks on one line", () => {
    const { log, lines } = memory();
    log.info("a\nb\r\nc", { x: "1\n2" });
    expect(lines()).toHaveLength(1);
  });

  it("lets no field replace the head of the line", () => {
    const { log, parsed } = memory();
    log.info("real", { msg: "forged", level: "error", replica: "forged", message: "other" });
    expect(parsed()).toEqual([
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

  it("adds the fields of a child to its lines, its own last", () => {
    const { log, parsed } = memory();
    const child = log.child({ key: "ns/a", event: "Reconcile" }).child({ attempt: 1 });
    child.info("x", { attempt: 2 });
    log.info("y");
    expect(parsed()[0]).toMatchObject({ key: "ns/a", event: "Reconcile", attempt: 2 });
    expect(parsed()[1]).not.toHaveProperty("key");
  });

  it("shows the stack of an error at level debug only", () => {
    const [info, debug] = [memory(), memory({ level: "debug" })];
    for (const { log } of [info, debug]) log.error("failed", { error: new Error("boom") });
    expect(info.parsed()).toMatchObject([{ error: { message: "boom" } }]);
    expect(info.lines()[0]).not.toContain("stack");
    expect(debug.lines()[0]).toContain("logger.test.ts");
  });
});

describe("secrets", () => {
  it.each(["json", "text"] as const)("reach no line as %s, by no way in", (format) => {
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
    expect(lines()).toHaveLength(2);
    expect(lines().join("\n")).not.toContain("hush");
  });
});

describe("as text", () => {
  it("is for people: instant, level, event, message, fields", () => {
    const { log, lines } = memory({ format: "text" });
    log.warn("lost the lock", { event: "LockLost", key: "ns/a", why: "two words", n: 3 });
    expect(lines()).toEqual([
      "2026-01-02T12:00:00.000Z WARN  LockLost lost the lock " +
        'key=ns/a why="two words" n=3 replica=replica-1',
    ]);
  });

  it("lets neither line breaks nor escape sequences through", () => {
    const { log, lines } = memory({ format: "text" });
    log.info("a\nERROR forged", { x: "\u001B[2J", "y\nz": 1 });
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).not.toContain("\u001B");
  });
});

describe("close", () => {
  it("hands every line over, drops later ones and may be called twice", async () => {
    const { log, parsed } = memory();
    for (let i = 0; i < 100; i++) log.info(String(i));
    await log.close();
    log.info("late");
    await log.close();
    expect(parsed()).toHaveLength(100);
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
