import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { call } from "./call.ts";

const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
describe("lockedcron next", () => {
  test("prints the next times of a schedule in its zone, in UTC, one per line", async () => {
    const argv = ["next", "--schedule", "0 9 * * *", "--time-zone=Europe/Berlin", "--count=2"];
    expect(await call(argv)).toEqual({
      code: 0,
      out: "2026-12-01T08:00:00Z\n2026-12-02T08:00:00Z\n",
      error: "",
    });
  });

  test("begins after the instant that is asked for, and not at it", async () => {
    const argv = ["next", "--schedule", "@hourly", "--after", "2026-01-01T00:00:00Z", "--count=1"];
    expect((await call(argv)).out).toBe("2026-01-01T01:00:00Z\n");
  });

  test("takes six fields with --seconds, and says so without", async () => {
    const argv = ["next", "--schedule", "*/20 0 12 * * *", "--count=2"];
    expect((await call([...argv, "--seconds"])).out).toBe(
      "2026-11-30T12:00:20Z\n2026-11-30T12:00:40Z\n",
    );
    const { code, error } = await call(argv);
    expect(code).toBe(2);
    expect(error).toContain("expected exactly 5 fields");
  });

  test("takes H for a name, the same as the status of that LockedCronJob shows", async () => {
    const argv = ["next", "--schedule", "H H * * *", "--count=1"];
    expect((await call([...argv, "--name", "team/report"])).out).toBe("2026-12-01T11:55:00Z\n");
    expect((await call([...argv, "--hash-seed", "team/report"])).out).toBe(
      "2026-12-01T11:55:00Z\n",
    );
    const { code, error } = await call(argv);
    expect(code).toBe(2);
    expect(error).toContain("H is picked by the hash of a name");
    expect((await call([...argv, "--name=report"])).error).toContain(
      '--name: "report" is not NAMESPACE/NAME',
    );
  });

  test.each([
    ["Kubernetes", "2027-03-29T00:30:00Z"],
    ["WallClock", "2027-03-29T00:30:00Z"],
    ["RunOnce", "2027-03-28T01:00:00Z"],
  ])("takes a policy for changes of clocks: %s", async (policy, want) => {
    const argv = ["next", "--schedule=30 2 * * *", "--time-zone=Europe/Berlin", "--count=1"];
    const { out } = await call([...argv, "--after=2027-03-27T12:00:00Z", "--dst-policy", policy]);
    expect(out).toBe(`${want}\n`);
  });

  test("names the policies when there is no such one", async () => {
    const { code, error } = await call(["next", "--schedule=@daily", "--dst-policy=Once"]);
    expect(code).toBe(2);
    expect(error).toContain('--dst-policy: "Once" is not one of Kubernetes, WallClock, RunOnce');
  });

  test("reads seconds, dstPolicy and hashSeed from JSON lines", async () => {
    const base = { after: "2027-03-27T12:00:00Z", count: 1 };
    const lines = [
      { ...base, schedule: "5 * * * * *", seconds: true },
      { ...base, schedule: "30 2 * * *", timeZone: "Europe/Berlin", dstPolicy: "RunOnce" },
      { ...base, schedule: "H H * * *", hashSeed: "team/report" },
      { ...base, schedule: "30 2 * * *", dstPolicy: "Never" },
    ];
    const { out } = await call(
      ["next", "--jsonl"],
      lines.map((line) => `${JSON.stringify(line)}\n`),
    );
    expect(
      out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { next: ["2027-03-27T12:00:05Z"] },
      { next: ["2027-03-28T01:00:00Z"] },
      { next: ["2027-03-28T11:55:00Z"] },
      { error: 'dstPolicy: "Never" is not one of Kubernetes, WallClock, RunOnce' },
    ]);
  });

  test("says on the side when a schedule never fires", async () => {
    expect(await call(["next", "--schedule", "0 0 31 2 *"])).toEqual({
      code: 0,
      out: "",
      error: "lockedcron next: does not fire in the five years after 2026-11-30T12:00:00Z\n",
    });
  });

  test("says on the side where a CronJob stands still and a LockedCronJob does not", async () => {
    const argv = ["next", "--schedule", "45 3 * * *", "--time-zone", "Pacific/Chatham"];
    const { code, out, error } = await call([...argv, "--after=2026-04-04T00:00:00Z", "--count=3"]);
    expect({ code, out }).toEqual({ code: 0, out: "2026-04-04T14:00:00Z\n".repeat(3) });
    expect(error).toMatch(/CronJob stands still; a LockedCronJob goes on: 2026-04-04T15:00:00Z\n$/);
  });

  test("everything that is wrong with the call comes in one message, exit code 2", async () => {
    const { code, out, error } = await call([
      "next",
      "--schedul",
      "x",
      "--count=0",
      "--after",
      "soon",
    ]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(error).toContain("--schedul: no such flag");
    expect(error).toContain("--schedule: is missing");
    expect(error).toContain('--count: "0" is not a whole number from 1 to 10000');
    expect(error).toContain('--after: "soon" is not an RFC 3339 instant');
  });

  test("a schedule and a zone that are not valid are wrong flags too", async () => {
    const { code, error } = await call([
      "next",
      "--schedule=61 * * * *",
      "--time-zone=utc",
      "--count=x",
    ]);
    expect(code).toBe(2);
    expect(error).toContain("--schedule: 61 is above the maximum 59 in minute");
    expect(error).toContain("--time-zone: unknown time zone");
    expect(error).toContain('--count: "x" is not a whole number');
  });

  test.each(["0x10", "1e2", "", "-1", "1.5", "10001", "99999999999999999999"])(
    "--count=%s is refused",
    async (count) => {
      const { code, error } = await call(["next", "--schedule=@daily", `--count=${count}`]);
      expect(code).toBe(2);
      expect(error).toContain(`--count: "${count}" is not a whole number from 1 to 10000`);
    },
  );

  test("help is there at each level", async () => {
    expect((await call(["--help"])).out).toContain("lockedcron COMMAND [options]");
    expect((await call(["next", "--help"])).out).toContain("--time-zone ZONE");
    expect((await call([])).code).toBe(2);
    expect((await call(["nxt"])).error).toContain('"nxt": no such command');
  });

  test("a prototype's name is no command", async () => {
    expect((await call(["constructor"])).code).toBe(2);
  });
});

// Some of these start processes, which takes its time on a busy machine.
describe("lockedcron next --jsonl", { timeout: 60_000 }, () => {
  test("answers each line, and a bad one stops nothing", async () => {
    const { code, out } = await call(
      ["next", "--jsonl"],
      [
        '{"schedule":"* * * * *","after":"2026-01-01T00:00:00Z","count":2}\n{"sche',
        'dule":"* * *"}\nnot json\n',
        '[]\n{"schedule":7}\n{"schedule":"30 0 12 * * *","seconds":true,"count":1}\n',
        '{"schedule":"@daily","timeZone":null,"count":1}',
      ],
    );
    const answers = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(code).toBe(0);
    expect(answers).toEqual([
      { next: ["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"] },
      { error: expect.stringContaining("5 fields") as string },
      { error: 'not JSON: "not json"' },
      { error: 'not a JSON object: "[]"' },
      { error: "schedule: 7 is not a string" },
      { next: ["2026-11-30T12:00:30Z"] },
      { next: ["2026-12-01T00:00:00Z"] },
    ]);
  });

  test("gives one line for each, also for blank, torn and endless ones", async () => {
    const separator = "\u2028";
    const { out } = await call(
      ["next", "--jsonl"],
      [
        "\n\r\n",
        `{"schedule":"@daily","count":1,"note":"a${separator}b"}\r\n`,
        `{"schedule":"${"x".repeat(700_000)}`,
        `${"x".repeat(700_000)}"}\n`,
        '{"schedule":"@daily","count":1.5}\n{"schedule":"@daily","count":"3","timeZone":"Mars/Base"}\n',
        '{"timeZone":"UTC"}\n',
        `{"schedule":"@daily"${",".repeat(1_200_000)}`,
      ],
    );
    expect(out.endsWith("\n")).toBe(true);
    expect(
      out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { error: 'not JSON: ""' },
      { error: 'not JSON: "\\r"' },
      { next: ["2026-12-01T00:00:00Z"] },
      { error: "line is longer than 1048576 characters" },
      { error: "count: 1.5 is not a whole number from 1 to 10000" },
      { error: expect.stringMatching(/^timeZone: unknown time zone "Mars\/Base"/) as string },
      { error: "schedule: is missing" },
      { error: "line is longer than 1048576 characters" },
    ]);
  });

  test("reads characters that a chunk cuts in two", async () => {
    const bytes = Buffer.from('{"schedule":"@daily","timeZone":"Å"}\n');
    const at = bytes.indexOf(0xc3) + 1;
    const { out } = await call(["next", "--jsonl"], [bytes.subarray(0, at), bytes.subarray(at)]);
    expect(out).toContain('unknown time zone \\"Å\\"');
  });

  test("takes no other flags", async () => {
    const { code, error } = await call(["next", "--jsonl", "--count=3"]);
    expect(code).toBe(2);
    expect(error).toContain("--count: does not go with --jsonl");
  });

  test("gives the golden answers as a process", async () => {
    const lines = readFileSync(new URL("../vectors/cron-golden.jsonl", import.meta.url), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((vector) => vector.tzdata === undefined);
    const child = spawn(process.execPath, [MAIN, "next", "--jsonl"], { stdio: "pipe" });
    // The lines themselves: what a question does not know, such as the answer, is not looked at.
    child.stdin.end(`${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
    let text = "";
    for await (const chunk of child.stdout) text += String(chunk);
    const answers = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(answers).toEqual(
      lines.map(({ next }) =>
        next === undefined ? { error: expect.stringMatching(/./) as string } : { next },
      ),
    );
  });

  test.each([
    ["one big answer", "", "--schedule @daily --count 9999"],
    ["questions without an end", `yes '{"schedule":"@daily"}' |`, "--jsonl"],
  ])("ends quietly when its reader does (%s)", async (_name, source, flags) => {
    const pipe = `${source} "${process.execPath}" "${MAIN}" next ${flags} | head -c 20`;
    const child = spawn("sh", ["-c", pipe], { stdio: ["ignore", "ignore", "pipe"] });
    const exited = once(child, "exit");
    let complaints = "";
    for await (const chunk of child.stderr) complaints += String(chunk);
    expect(complaints).toBe("");
    expect(await exited).toEqual([0, null]);
  });

  test("a full disk is an error", async () => {
    const argv = `"${process.execPath}" "${MAIN}" next --schedule @daily > /dev/full`;
    const child = spawn("sh", ["-c", argv], { stdio: ["ignore", "ignore", "pipe"] });
    const exited = once(child, "exit");
    let complaints = "";
    for await (const chunk of child.stderr) complaints += String(chunk);
    expect(complaints).toMatch(/^lockedcron: standard output: ENOSPC/);
    expect(await exited).toEqual([1, null]);
  });
});

describe("the start of lockedcron next", () => {
  test("loads the calendar and nothing from outside", () => {
    const seen = new Set<string>();
    const packages = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      const source = readFileSync(file, "utf8");
      // Static imports only: run.ts loads a command when it is called.
      for (const [, name = ""] of source.matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)";/gms)) {
        if (name.startsWith(".")) visit(resolve(dirname(file), name));
        else packages.add(name);
      }
    };
    visit(MAIN);
    visit(resolve(dirname(MAIN), "next.ts"));
    expect([...packages]).toEqual(["node:util"]);
    expect(seen.size).toBeGreaterThan(10);
  });
});
