import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { call, lockedCronJob, TEMPLATE } from "./call.ts";

const cronJob = (...spec: string[]): string =>
  [
    "# nightly report",
    "apiVersion: batch/v1",
    "kind: CronJob",
    "metadata:",
    "  name: report",
    "  uid: 1234",
    "  annotations:",
    "    kubectl.kubernetes.io/last-applied-configuration: '{}'",
    "spec:",
    ...spec.map((line) => `  ${line}`),
    ...TEMPLATE,
    "status:",
    "  lastScheduleTime: 2026-11-30T12:00:00Z",
    "",
  ].join("\n");

const objects = (text: string) =>
  parseAllDocuments(text).map((document) => document.toJS() as Record<string, any>); // oxlint-disable-line typescript/no-explicit-any -- looks into YAML

describe("a CronJob", () => {
  test("becomes a LockedCronJob that does the same; comments stay, what the cluster added goes", async () => {
    const { code, out, error } = await call(
      ["convert", "-f", "-"],
      cronJob("schedule: 0 3 * * * # quiet then", "timeZone: Europe/Berlin"),
    );
    expect({ code, error }).toEqual({ code: 0, error: "" });
    expect(out).toMatch(/^# nightly report\napiVersion: lockedcron\.io\/v1alpha1\n/);
    expect(out).toContain("schedule: 0 3 * * * # quiet then");
    expect(objects(out)).toMatchObject([
      {
        kind: "LockedCronJob",
        metadata: { name: "report" },
        spec: {
          schedule: "0 3 * * *",
          timeZone: "Europe/Berlin",
          // Left out it would be Forbid here, and was Allow there.
          concurrencyPolicy: "Allow",
        },
      },
    ]);
    expect(objects(out)[0]).not.toHaveProperty("status");
    expect(objects(out)[0]?.metadata).toEqual({ name: "report" });
  });

  test.each(["''", "null"])("gets a policy where there is %s, too", async (empty) => {
    const { out } = await call(
      ["convert", "-"],
      cronJob("schedule: 0 3 * * *", `concurrencyPolicy: ${empty}`),
    );
    expect(objects(out)[0]?.spec.concurrencyPolicy).toBe("Allow");
  });

  test.each([
    ["lockedcronjob", "LockedCronJob"],
    ["cronjob", "CronJob"],
  ])(
    "with --suspend becomes a %s that runs nothing yet; others stay as they are",
    async (to, kind) => {
      const text = [
        cronJob("schedule: 0 3 * * *", "suspend: false # for now"),
        lockedCronJob("schedule: 0 4 * * *"),
      ].join("---\n");
      const { code, out } = await call(["convert", "-", "--suspend", "--to", to], text);
      expect(code).toBe(0);
      // One of the two was of that kind already.
      expect(objects(out).map((object) => object.kind)).toEqual([kind, kind]);
      const suspended = objects(out).map(({ spec }) => spec.suspend as unknown);
      expect(suspended).toEqual(to === "cronjob" ? [false, true] : [true, undefined]);
    },
  );

  test("keeps its policy, and goes through lint", async () => {
    const { out } = await call(
      ["convert", "-"],
      cronJob("schedule: 0 3 * * *", "concurrencyPolicy: Replace"),
    );
    expect(objects(out)[0]?.spec.concurrencyPolicy).toBe("Replace");
    expect(await call(["lint", "-", "--strict"], out)).toMatchObject({ code: 0, out: "" });
  });

  test("is found among other objects, and in a List", async () => {
    const list = `apiVersion: v1\nkind: List\nitems:\n${cronJob("schedule: '@daily'")
      .split("\n")
      .slice(1)
      .map((line, i) => (i === 0 ? `- ${line}` : `  ${line}`))
      .join("\n")}`;
    const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n";
    const { code, out } = await call(["convert", "-"], `${pod}---\n${list}`);
    expect(code).toBe(0);
    const [first, second] = objects(out);
    expect(first).toEqual({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" } });
    expect(second?.items).toMatchObject([
      { kind: "LockedCronJob", spec: { concurrencyPolicy: "Allow" } },
    ]);
  });
});

describe("back to a CronJob", () => {
  const back = (...spec: string[]) =>
    call(["convert", "--to", "cronjob", "-f", "-"], lockedCronJob(...spec));

  test("goes without loss when the spec is one of a CronJob", async () => {
    const { code, out, error } = await back("schedule: 0 3 * * *", "suspend: true");
    expect({ code, error }).toEqual({ code: 0, error: "" });
    expect(objects(out)).toMatchObject([
      {
        apiVersion: "batch/v1",
        kind: "CronJob",
        spec: { schedule: "0 3 * * *", suspend: true, concurrencyPolicy: "Forbid" },
      },
    ]);
  });

  test("H goes over as its numbers", async () => {
    const { code, out } = await back("schedule: H H * * *", "hashSeed: team/report");
    expect(code).toBe(0);
    expect(objects(out)[0]?.spec.schedule).toBe("55 11 * * *");
    expect(objects(out)[0]?.spec).not.toHaveProperty("hashSeed");
  });

  test("there and back is what it was", async () => {
    const spec = ["schedule: 0 3 * * *", "timeZone: Asia/Tokyo", "concurrencyPolicy: Allow"];
    const there = await call(["convert", "-"], cronJob(...spec));
    const andBack = await call(["convert", "--to=cronjob", "-"], there.out);
    expect(objects(andBack.out)[0]?.spec).toEqual(objects(cronJob(...spec))[0]?.spec);
  });

  test.each([
    [["schedule: 5 0 3 * * *"], 'spec.schedule: "5 0 3 * * *" has seconds', "0 3 * * *"],
    [
      ["schedules:", "- schedule: '@daily'", "- schedule: 0 6 * * *"],
      'spec.schedules: a CronJob has one schedule; make another one for "0 6 * * *" in UTC',
      "@daily",
    ],
    [["schedule: '@daily'", "dstPolicy: RunOnce"], "spec.dstPolicy: ", "@daily"],
    [["schedule: '@daily'", "jitterSeconds: 5"], "spec.jitterSeconds: ", "@daily"],
    [["schedule: '@daily'", "notAfter: 2027-01-01T00:00:00Z"], "spec.notAfter: ", "@daily"],
    [["schedule: '@daily'", "concurrencyPolicy: Queue"], "spec.concurrencyPolicy: Queue", "@daily"],
    [["schedule: '@daily'", "lock: {leaseSeconds: 60}"], "spec.lock: ", "@daily"],
  ])("%j loses something, and says so", async (spec, message, schedule) => {
    const { code, out, error } = await back(...spec);
    expect(code).toBe(1);
    expect(error).toContain(`-: report: ${message}`);
    const [object] = objects(out);
    expect(object?.spec.schedule).toBe(schedule);
    expect(Object.keys(object?.spec).toSorted()).toEqual(
      ["concurrencyPolicy", "jobTemplate", "schedule"].toSorted(),
    );
  });
});

test.each([
  ["a schedule that is a number", lockedCronJob("schedule: 5")],
  [
    "no spec",
    "apiVersion: lockedcron.io/v1alpha1\nkind: LockedCronJob\nmetadata: {name: report}\n",
  ],
  ["a spec that is a text", "kind: LockedCronJob\nmetadata: {name: report}\nspec: none\n"],
])("with %s a LockedCronJob is left as it is, and that is said", async (_, text) => {
  const { code, out, error } = await call(["convert", "--to=cronjob", "-"], text);
  expect({ code, error }).toEqual({
    code: 1,
    error: "-: report: is left as it is, for it is not valid: see lockedcron lint\n",
  });
  expect(objects(out)[0]?.kind).toBe("LockedCronJob");
});

test.each([
  [["convert"], "no file is given"],
  [["convert", "-", "--to", "job"], '--to: "job" is neither lockedcronjob nor cronjob'],
])("%j is called wrongly", async (argv, message) => {
  const { code, error } = await call(argv);
  expect(code).toBe(2);
  expect(error).toContain(message);
});

test("a file that cannot be read is one error, exit code 1", async () => {
  const { code, out, error } = await call(["convert", "/nowhere/a.yaml"]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(error).toContain("/nowhere/a.yaml: ENOENT");
});
