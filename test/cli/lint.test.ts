import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { RULES } from "../../src/cli/lint/rules.ts";
import { call, lockedCronJob, TEMPLATE } from "./call.ts";

const lint = (text: string, ...flags: string[]) => call(["lint", "-f", "-", ...flags], text);
/** Findings without the file. */
const findings = async (text: string): Promise<string[]> =>
  (await lint(text)).out
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.replace(/^-:/, ""));

const sound = lockedCronJob("schedule: 0 9 * * *", "concurrencyPolicy: Forbid");

describe("lockedcron lint", () => {
  test("has nothing to say of a good manifest", async () => {
    expect(await lint(sound)).toEqual({
      code: 0,
      out: "",
      error: "1 LockedCronJob: 0 errors, 0 warnings\n",
    });
  });

  test("names file, line and field of each mistake, in order, and fails", async () => {
    const text = lockedCronJob(
      "scheduel: '* * * * *'",
      "schedule: 5",
      "concurrencyPolicy: Never",
      "startingDeadlineSeconds: -1",
      "lock:",
      "  leaseSeconds: 4",
    );
    const { code, out, error } = await lint(text);
    expect(code).toBe(1);
    expect(out.trim().split("\n")).toEqual([
      "-:7: error: spec.scheduel: unknown field",
      '-:8: error: spec.schedule: Invalid value: "integer": must be of type string',
      '-:9: error: spec.concurrencyPolicy: Unsupported value: "Never": supported values: "Allow", "Forbid", "Queue", "Replace", "Skip"',
      "-:10: error: spec.startingDeadlineSeconds: Invalid value: -1: should be greater than or equal to 0",
      "-:12: error: spec.lock.leaseSeconds: Invalid value: 4: should be greater than or equal to 5",
    ]);
    expect(error).toBe("1 LockedCronJob: 5 errors, 0 warnings\n");
  });

  test.each([
    [
      "a field deep in the pod template",
      sound.replace("image:", "imag:"),
      [
        "15: error: spec.jobTemplate.spec.template.spec.containers[0].image: Required value",
        "16: error: spec.jobTemplate.spec.template.spec.containers[0].imag: unknown field",
      ],
    ],
    [
      "two containers of one name",
      sound.replace(
        "            - name: main\n",
        "            - {name: main, image: a}\n            - name: main\n",
      ),
      [
        '16: error: spec.jobTemplate.spec.template.spec.containers[1]: Duplicate value: {"name":"main"}',
      ],
    ],
    [
      "a quantity that is none",
      `${sound}              resources: {limits: {cpu: many}}\n`,
      [
        /^17: error: spec\.jobTemplate\.spec\.template\.spec\.containers\[0\]\.resources\.limits\.cpu: Invalid value: "many": should match/,
      ],
    ],
    [
      "a schedule",
      lockedCronJob("schedule: 0 25 * * *", "concurrencyPolicy: Forbid"),
      [
        '7: error: spec.schedule: UnparseableSchedule: 25 is above the maximum 23 in hour (0-23): "25"',
      ],
    ],
    [
      "a zone",
      lockedCronJob("schedule: '@daily'", "timeZone: europe/berlin"),
      [
        '8: error: spec.timeZone: UnknownTimeZone: unknown time zone "europe/berlin": names are case-sensitive, did you mean Europe/Berlin?',
      ],
    ],
    [
      "one of several schedules",
      lockedCronJob("schedules:", "- schedule: '@daily'", "- schedule: '@every 1h'"),
      [/^9: error: spec\.schedules\[1\]\.schedule: UnparseableSchedule: @every counts from/],
    ],
    [
      "a zone and a schedule",
      lockedCronJob("schedule: '60 * * * *'", "timeZone: Europe/Mars"),
      [/^7: error: spec\.schedule: Unpars/, /^8: error: spec\.timeZone: UnknownTimeZone/],
    ],
    [
      "each of several schedules",
      lockedCronJob(
        "schedules:",
        "- schedule: '60 * * * *'",
        "- {schedule: '@daily', timeZone: Europe/Mars}",
      ),
      [
        /^8: error: spec\.schedules\[0\]\.schedule: Unpars/,
        /^9: error: spec\.schedules\[1\]\.timeZone: UnknownTimeZone/,
      ],
    ],
    [
      "neither schedule",
      lockedCronJob("suspend: true"),
      ["6: error: spec.schedule: Required value: set it, or schedules for several"],
    ],
    [
      "a window",
      lockedCronJob("schedule: '@daily'", "notBefore: 2027-01-02T00:00:00Z", "notAfter: tomorrow"),
      ['9: error: spec.notAfter: UnparseableSchedule: notAfter "tomorrow" is no RFC 3339 time'],
    ],
    [
      "combinations",
      lockedCronJob(
        "schedule: '@daily'",
        "concurrencyPolicy: Replace",
        "queueLimit: 3",
        "catchUp: {policy: All}",
      ),
      [
        "9: error: spec.queueLimit: Invalid value: is for concurrencyPolicy Queue only",
        "10: error: spec.catchUp.policy: Invalid value: cannot be All with concurrencyPolicy Replace: each run would end the one before",
      ],
    ],
    [
      "a version that is not served",
      sound.replace("v1alpha1", "v1"),
      ['1: error: apiVersion: Invalid value: "lockedcron.io/v1": must be lockedcron.io/v1alpha1'],
    ],
    [
      "a name of 53 characters",
      sound.replace("name: report", `name: ${"n".repeat(53)}`),
      [/^4: error: metadata\.name: Invalid value: "n+": must be no more than 52 characters$/],
    ],
    [
      "no name",
      sound.replace("  name: report\n", ""),
      [/^3: error: metadata\.name: Required value/],
    ],
  ])("finds %s", async (_, text, want) => {
    const got = await findings(text);
    expect(got.filter((line) => line.includes(" error: "))).toEqual(
      want.map((line) => (typeof line === "string" ? line : expect.stringMatching(line))),
    );
  });

  test("warns of what is allowed and may not be meant, which --strict takes for errors", async () => {
    const text = lockedCronJob("schedule: 30 2 * * *", "timeZone: Europe/Berlin");
    const { code, out } = await lint(text);
    expect(code).toBe(0);
    expect(out.trim().split("\n")).toEqual([
      "-:6: warning: spec: concurrencyPolicy is Forbid when it is left out, where a CronJob has Allow",
      expect.stringMatching(/^-:7: warning: spec\.schedule: 2027-03-28T01:00:00Z: clocks in /),
      expect.stringMatching(/^-:7: warning: spec\.schedule: 2027-10-31T01:00:00Z: clocks in /),
    ]);
    expect((await lint(text, "--strict")).code).toBe(1);
    const never = lockedCronJob("schedule: 0 0 31 2 *", "concurrencyPolicy: Forbid");
    expect(await findings(never)).toEqual([
      "7: warning: spec.schedule: has no tick in the coming five years",
    ]);
  });

  test("reads several documents and files, and passes other kinds over", async () => {
    const folder = await mkdtemp(join(tmpdir(), "lint-"));
    try {
      const file = join(folder, "a.yaml");
      await writeFile(file, `# none\n---\napiVersion: v1\nkind: Pod\n---\n${sound}---\n${sound}`);
      const { code, error } = await call(["lint", file, "--filename", "-"], sound);
      expect({ code, error }).toEqual({
        code: 0,
        error: "3 LockedCronJobs: 0 errors, 0 warnings; 1 object of other kinds passed over\n",
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test.each([
    ["YAML that is broken", "a: [1\nb: 2", /^-:2: error: /],
    ["a list", "- a", /^-:1: error: is not a Kubernetes object\n$/],
  ])("says where %s is", async (_, text, want) => {
    const { code, out } = await lint(text);
    expect(code).toBe(1);
    expect(out).toMatch(want);
  });

  test("a file that is not there is an error, and stops nothing", async () => {
    const { code, out } = await call(["lint", "/nowhere/a.yaml", "-f", "-"], `${sound}x: 1\n`);
    expect(code).toBe(1);
    expect(out).toMatch(/^\/nowhere\/a\.yaml: error: ENOENT.*\n-:17: error: x: unknown field\n$/);
  });

  test.each([
    [["lint"], "no file is given"],
    [["lint", "--strictly", "-"], "--strictly: no such flag"],
  ])("%j is called wrongly", async (argv, message) => {
    const { code, error } = await call(argv);
    expect(code).toBe(2);
    expect(error).toContain(message);
  });
});

test("every CEL rule of the CRD has its counterpart", async () => {
  const crd = parse(
    await readFile(new URL("../../crds/lockedcronjobs.yaml", import.meta.url), "utf8"),
  ) as { spec: { versions: [{ schema: { openAPIV3Schema: object } }] } };
  const messages: string[] = [];
  const visit = (schema: Record<string, unknown>, path: string): void => {
    const judgedByTheCalendar = /\.(schedule|timeZone)$/.test(path);
    const rules = (schema["x-kubernetes-validations"] ?? []) as { message: string }[];
    if (!judgedByTheCalendar) messages.push(...rules.map(({ message }) => message));
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      visit(field as Record<string, unknown>, `${path}.${name}`);
    }
    if (typeof schema.items === "object") visit(schema.items as Record<string, unknown>, path);
  };
  visit(crd.spec.versions[0].schema.openAPIV3Schema as Record<string, unknown>, "");
  const ours = RULES.map(({ message }) =>
    message.replace(/^(?:Invalid value|Required value|Forbidden): /, ""),
  );
  expect(messages.toSorted()).toEqual([...ours, "must be no more than 52 characters"].toSorted());
  expect(TEMPLATE.length).toBeGreaterThan(0);
});
