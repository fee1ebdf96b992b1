import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { runCli } from "../../src/cli/run.ts";

const NOW = Date.parse("2026-11-30T12:00:00Z");

async function call(argv: string[], stdin: string[] = []) {
  let out = "";
  let error = "";
  const code = await runCli(argv, {
    stdin: (async function* () {
      yield* stdin;
    })(),
    out(text) {
      out += text;
      return Promise.resolve(true);
    },
    error(text) {
      error += text;
    },
    now: () => NOW,
    env: {},
  });
  return { code, out, error };
}

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

  test("prints nothing for a schedule that never fires", async () => {
    expect(await call(["next", "--schedule", "0 0 31 2 *"])).toEqual({
      code: 0,
      out: "",
      error: "",
    });
  });

  test("a schedule that is not valid is one error, exit code 1", async () => {
    const { code, out, error } = await call(["next", "--schedule", "61 * * * *"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(error).toMatch(/^lockedcron next: .*61/);
  });

  test("everything that is wrong with the call comes in one message, exit code 2", async () => {
    const { code, error } = await call(["next", "--schedul", "x", "--count=0", "--after", "soon"]);
    expect(code).toBe(2);
    expect(error).toContain("--schedul: no such flag");
    expect(error).toContain("--schedule: is missing");
    expect(error).toContain("--count: 0 is not a whole number from 1 to 10000");
    expect(error).toContain('--after: "soon" is not an RFC 3339 instant');
  });

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

describe("lockedcron next --jsonl", () => {
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

  test("takes no other flags", async () => {
    const { code, error } = await call(["next", "--jsonl", "--count=3"]);
    expect(code).toBe(2);
    expect(error).toContain("--count: does not go with --jsonl");
  });

  test("gives the golden answers as a process, and ends quietly when its reader does", async () => {
    const lines = readFileSync(new URL("../vectors/cron-golden.jsonl", import.meta.url), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((vector) => vector.tzdata === undefined && Array.isArray(vector.next));
    const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
    const child = spawn(process.execPath, [main, "next", "--jsonl"], { stdio: "pipe" });
    const questions = lines.map(({ next, ...rest }) =>
      JSON.stringify({ ...rest, count: Math.max(1, (next as string[]).length) }),
    );
    child.stdin.end(`${questions.join("\n")}\n`);
    let text = "";
    for await (const chunk of child.stdout) text += String(chunk);
    const answers = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(answers).toEqual(lines.map(({ next }) => ({ next })));

    const headless = spawn(
      "sh",
      ["-c", `"${process.execPath}" "${main}" next --schedule @daily --count 9999 | head -n 1`],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    let complaints = "";
    for await (const chunk of headless.stderr) complaints += String(chunk);
    expect(complaints).toBe("");
  });
});
