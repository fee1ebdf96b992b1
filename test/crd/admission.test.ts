/** What the API server itself says about manifests, by the schema and the rules of the CRD alone. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { call } from "../cli/call.ts";
import { lockedCronJobs, manifest, objectOf, refusalsOf, type Manifest } from "./fixture.ts";
import { containerOf, jobOf, podOf, useCrd } from "./suite.ts";

const client = useCrd();

/** What `lockedcron lint`, without a cluster, has to say of the same manifest. */
async function fieldsThatLintRefuses(m: Manifest): Promise<Set<string | undefined>> {
  const text = stringify(objectOf(lockedCronJobs, m, "default"), { aliasDuplicateObjects: false });
  const { out } = await call(["lint", "-"], text);
  return new Set([...out.matchAll(/^-:\d+: error: ([^ ]+): /gm)].map(([, field]) => field));
}

const POD = "spec.jobTemplate.spec.template.spec";
const FIVE_FIELDS =
  "expected exactly 5 fields (minute, hour, day of month, month, day of week), 6 with the second first, one of " +
  "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or @every and a duration such as 1h30m";

describe("an invalid manifest is refused, naming the field and what is wrong", () => {
  const schedule =
    (text: string) =>
    (m: Manifest): void => {
      m.spec.schedule = text;
    };
  const timeZone =
    (name: string) =>
    (m: Manifest): void => {
      m.spec.timeZone = name;
    };

  test.each<[mistake: string, change: (m: Manifest) => void, ...refusals: string[]]>([
    [
      "a name of 53 characters",
      (m) => (m.metadata.name = "n".repeat(53)),
      "metadata.name: Invalid value: must be no more than 52 characters",
    ],
    [
      "no schedule",
      (m) => delete m.spec.schedule,
      "spec.schedule: Required value: set it, or schedules for several",
    ],
    [
      "schedule and schedules",
      (m) => (m.spec.schedules = [{ schedule: "@daily" }]),
      "spec.schedules: Forbidden: cannot be set together with schedule: put all of them here",
    ],
    [
      "several schedules with mistakes",
      (m) => {
        delete m.spec.schedule;
        m.spec.schedules = [
          { schedule: "0 25 * * *" },
          { schedule: "@every 1h" },
          { schedule: "@daily", timeZone: "local" },
        ];
      },
      'spec.schedules[0].schedule: Invalid value: "0 25 * * *": expected 5 fields, or 6 with the second first, each *, H, or numbers and ranges within its bounds separated by commas, with an optional /step',
      'spec.schedules[1].schedule: Invalid value: "@every 1h": @every counts from the last run, which has no meaning beside other schedules',
      'spec.schedules[2].timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
    ],
    [
      "two schedules of one name",
      (m) => {
        delete m.spec.schedule;
        m.spec.schedules = [
          { schedule: "@daily", name: "night" },
          { schedule: "@hourly" },
          { schedule: "@weekly", name: "night" },
        ];
      },
      "spec.schedules: Invalid value: names must be unique",
    ],
    [
      "a schedule whose name has spaces",
      (m) => {
        delete m.spec.schedule;
        m.spec.schedules = [{ schedule: "@daily", name: "at night" }];
      },
      `spec.schedules[0].name: Invalid value: "at night": spec.schedules[0].name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'`,
    ],
    [
      "a window that ends before it begins",
      (m) => {
        m.spec.notBefore = "2027-01-02T00:00:00Z";
        m.spec.notAfter = "2027-01-01T00:00:00Z";
      },
      "spec.notAfter: Invalid value: must not be before notBefore",
    ],
    [
      "another dstPolicy",
      (m) => (m.spec.dstPolicy = "Utc"),
      'spec.dstPolicy: Unsupported value: "Utc": supported values: "Kubernetes", "WallClock", "RunOnce"',
    ],
    [
      "a second of 60",
      schedule("60 0 4 * * *"),
      'spec.schedule: Invalid value: "60 0 4 * * *": second: expected *, H, or numbers and ranges within 0-59 separated by commas, each with an optional /step',
    ],
    ["an empty schedule", schedule(""), `spec.schedule: Invalid value: "": ${FIVE_FIELDS}`],
    ["four fields", schedule("0 4 * *"), `spec.schedule: Invalid value: "0 4 * *": ${FIVE_FIELDS}`],
    [
      "six fields",
      schedule("0 0 0 4 * * *"),
      `spec.schedule: Invalid value: "0 0 0 4 * * *": ${FIVE_FIELDS}`,
    ],
    [
      "an unknown macro",
      schedule("@reboot"),
      `spec.schedule: Invalid value: "@reboot": ${FIVE_FIELDS}`,
    ],
    [
      "a duration in days",
      schedule("@every 1d"),
      `spec.schedule: Invalid value: "@every 1d": ${FIVE_FIELDS}`,
    ],
    [
      "minute 60",
      schedule("60 * * * *"),
      'spec.schedule: Invalid value: "60 * * * *": minute: expected *, H, or numbers and ranges within 0-59 separated by commas, each with an optional /step',
    ],
    [
      "Sunday as 7, and no such month",
      schedule("0 0 * Mai 7"),
      'spec.schedule: Invalid value: "0 0 * Mai 7": month: expected *, H, or numbers and ranges within 1-12 (or jan-dec) separated by commas, each with an optional /step',
      'spec.schedule: Invalid value: "0 0 * Mai 7": day of week: expected *, H, or numbers and ranges within 0-6 (or sun-sat) separated by commas, each with an optional /step',
    ],
    [
      "a range that descends",
      schedule("0 22-2 * * *"),
      'spec.schedule: Invalid value: "0 22-2 * * *": hour: beginning of range beyond end of range',
    ],
    [
      "a zone in the schedule",
      schedule("TZ=Europe/Berlin 0 9 * * *"),
      'spec.schedule: Invalid value: "TZ=Europe/Berlin 0 9 * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
    ],
    [
      "a schedule of 513 characters",
      schedule(`0 0 * * *${" ".repeat(504)}`),
      "spec.schedule: Too long: may not be more than 512 bytes",
    ],
    [
      "an empty zone",
      timeZone(""),
      'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string',
    ],
    [
      "the zone Local",
      timeZone("local"),
      'spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
    ],
    [
      "a zone that leaves its folder",
      timeZone("Europe/../UTC"),
      'spec.timeZone: Invalid value: "Europe/../UTC": unknown time zone Europe/../UTC',
    ],
    [
      "a policy that is not there yet",
      (m) => (m.spec.concurrencyPolicy = "Often"),
      'spec.concurrencyPolicy: Unsupported value: "Often": supported values: "Allow", "Forbid", "Queue", "Replace", "Skip"',
    ],
    [
      "catchUp All with Replace",
      (m) => Object.assign(m.spec, { concurrencyPolicy: "Replace", catchUp: { policy: "All" } }),
      "spec.catchUp.policy: Invalid value: cannot be All with concurrencyPolicy Replace: each run would end the one before",
    ],
    [
      "catchUp Latest with Queue",
      (m) => Object.assign(m.spec, { concurrencyPolicy: "Queue", catchUp: { policy: "Latest" } }),
      "spec.catchUp.policy: Invalid value: must be All or absent with concurrencyPolicy Queue, which runs every tick",
    ],
    [
      "a queueLimit without Queue",
      (m) => (m.spec.queueLimit = 3),
      "spec.queueLimit: Invalid value: is for concurrencyPolicy Queue only",
    ],
    [
      "a negative deadline",
      (m) => (m.spec.startingDeadlineSeconds = -1),
      "spec.startingDeadlineSeconds: Invalid value: -1: spec.startingDeadlineSeconds in body should be greater than or equal to 0",
    ],
    [
      "a negative history limit",
      (m) => (m.spec.failedJobsHistoryLimit = -1),
      "spec.failedJobsHistoryLimit: Invalid value: -1: spec.failedJobsHistoryLimit in body should be greater than or equal to 0",
    ],
    [
      "suspend as text",
      (m) => (m.spec.suspend = "true"),
      'spec.suspend: Invalid value: "string": spec.suspend in body must be of type boolean: "string"',
    ],
    [
      "atLeastSeconds beyond atMostSeconds",
      (m) => (m.spec.lock = { atLeastSeconds: 10, atMostSeconds: 9 }),
      "spec.lock.atLeastSeconds: Invalid value: atLeastSeconds must not be more than atMostSeconds",
    ],
    [
      "a policy for lost locks that there is not",
      (m) => (m.spec.lock = { onLost: "Retry" }),
      'spec.lock.onLost: Unsupported value: "Retry": supported values: "Continue", "Suspend", "Delete"',
    ],
    [
      "a mutex that cannot be a name",
      (m) => (m.spec.lock = { mutexes: ["a/b/c"] }),
      `spec.lock.mutexes[0]: Invalid value: "a/b/c": spec.lock.mutexes[0] in body should match '^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'`,
    ],
    [
      "a mutex twice",
      (m) => (m.spec.lock = { mutexes: ["db", "db"] }),
      'spec.lock.mutexes[1]: Duplicate value: "db"',
    ],
    [
      "a lease of four seconds",
      (m) => (m.spec.lock = { leaseSeconds: 4 }),
      "spec.lock.leaseSeconds: Invalid value: 4: spec.lock.leaseSeconds in body should be greater than or equal to 5",
    ],
    [
      "a lease of more than an hour",
      (m) => (m.spec.lock = { leaseSeconds: 3601 }),
      "spec.lock.leaseSeconds: Invalid value: 3601: spec.lock.leaseSeconds in body should be less than or equal to 3600",
    ],
    [
      "an unknown answer to a lost quorum",
      (m) => (m.spec.lock = { onQuorumLoss: "Stop" }),
      'spec.lock.onQuorumLoss: Unsupported value: "Stop": supported values: "Proceed", "Wait"',
    ],
    ["no template", (m) => delete m.spec.jobTemplate, "spec.jobTemplate: Required value"],
    ["no pod", (m) => delete jobOf(m).template, "spec.jobTemplate.spec.template: Required value"],
    ["no containers", (m) => delete podOf(m).containers, `${POD}.containers: Required value`],
    [
      "an empty list of containers",
      (m) => (podOf(m).containers = []),
      `${POD}.containers: Invalid value: 0: ${POD}.containers in body should have at least 1 items`,
    ],
    [
      "a container without image",
      (m) => delete containerOf(m).image,
      `${POD}.containers[0].image: Required value`,
    ],
    [
      "two containers of one name",
      (m) => podOf(m).containers.push(containerOf(m)),
      `${POD}.containers[1]: Duplicate value: {"name":"main"}`,
    ],
    [
      "no restartPolicy",
      (m) => delete podOf(m).restartPolicy,
      `${POD}.restartPolicy: Required value`,
    ],
    [
      "restartPolicy Always",
      (m) => (podOf(m).restartPolicy = "Always"),
      `${POD}.restartPolicy: Unsupported value: "Always": supported values: "OnFailure", "Never"`,
    ],
    [
      "podFailurePolicy with restartPolicy OnFailure",
      (m) => {
        podOf(m).restartPolicy = "OnFailure";
        jobOf(m).podFailurePolicy = { rules: [] };
      },
      `${POD}.restartPolicy: Invalid value: only "Never" is supported when podFailurePolicy is specified`,
    ],
    [
      "a selector",
      (m) => (jobOf(m).selector = { matchLabels: { a: "b" } }),
      "spec.jobTemplate.spec.selector: Invalid value: `selector` will be auto-generated",
    ],
    [
      "a manual selector",
      (m) => (jobOf(m).manualSelector = true),
      'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "false"',
    ],
    [
      "negative parallelism",
      (m) => (jobOf(m).parallelism = -1),
      "spec.jobTemplate.spec.parallelism: Invalid value: -1: spec.jobTemplate.spec.parallelism in body should be greater than or equal to 0",
    ],
    [
      "a quantity that is none",
      (m) => (containerOf(m).resources = { requests: { cpu: "lots" } }),
      `${POD}.containers[0].resources.requests.cpu: Invalid value: "lots": ${POD}.containers[0].resources.requests.cpu in body should match '^ *[+-]?[0-9]*\\.?[0-9]*([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)? *$'`,
    ],
    [
      "an environment value that is a number",
      (m) => (containerOf(m).env = [{ name: "A", value: 1 }]),
      `${POD}.containers[0].env[0].value: Invalid value: "integer": ${POD}.containers[0].env[0].value in body must be of type string: "integer"`,
    ],
  ])("%s", async (_, change, ...refusals) => {
    expect(await refusalsOf(client(), lockedCronJobs, manifest(change))).toEqual(refusals);
    const fields = refusals.map((refusal) => refusal.split(": ", 1)[0]);
    expect(await fieldsThatLintRefuses(manifest(change))).toEqual(new Set(fields));
  });

  test.each<[path: string, change: (m: Manifest) => void]>([
    ["spec.scheduel", (m) => (m.spec.scheduel = "* * * * *")],
    ["spec.lock.leaseMinutes", (m) => (m.spec.lock = { leaseMinutes: 1 })],
    ["spec.schedules[0].nam", (m) => (m.spec.schedules = [{ schedule: "@daily", nam: "x" }])],
    [`${POD}.containers[0].imagePulPolicy`, (m) => (containerOf(m).imagePulPolicy = "Never")],
    [`${POD}.ephemeralContainers`, (m) => (podOf(m).ephemeralContainers = [])],
    [
      `${POD}.volumes[0].configMap.items[0].pth`,
      (m) =>
        (podOf(m).volumes = [
          { name: "v", configMap: { name: "c", items: [{ key: "k", path: "p", pth: "" }] } },
        ]),
    ],
  ])("an unknown field: %s", async (path, change) => {
    const [refusal, ...more] = await refusalsOf(client(), lockedCronJobs, manifest(change));
    expect(refusal).toContain(`unknown field "${path}"`);
    expect(more).toEqual([]);
    expect(await fieldsThatLintRefuses(manifest(change))).toContain(path);
  });
});

test.each<[what: string, change: (m: Manifest) => void]>([
  ["seconds", (m) => (m.spec.schedule = "*/10 * * * * *")],
  ["H", (m) => (m.spec.schedule = "H H(0-59)/10 H/2 H H(1-6) H(mon-fri)")],
  [
    "several schedules",
    (m) => {
      delete m.spec.schedule;
      m.spec.timeZone = "Europe/Berlin";
      m.spec.schedules = Array.from({ length: 16 }, (_, i) => ({
        schedule: `${"0,".repeat(100)}${i} 9 * * *`,
        timeZone: "Asia/Tokyo",
        name: `${"n".repeat(60)}${i}`,
      }));
    },
  ],
  [
    "all that bears on the ticks",
    (m) =>
      Object.assign(m.spec, {
        dstPolicy: "RunOnce",
        hashSeed: "team",
        jitterSeconds: 30,
        notBefore: "2027-01-01T00:00:00Z",
        notAfter: "2027-01-01T01:00:00+01:00",
      }),
  ],
])("a LockedCronJob may have %s", async (_, change) => {
  expect(await refusalsOf(client(), lockedCronJobs, manifest(change))).toEqual([]);
});

test("the API server gives each golden schedule the verdict that robfig/cron gave", async () => {
  const lines = readFileSync(new URL("../vectors/cron-golden.jsonl", import.meta.url), "utf8");
  // Six fields, and H, are ours: robfig/cron refuses the first where it expects five, and the second always.
  const isJudged = (v: { schedule: string; seconds?: true }): boolean =>
    v.seconds === true ||
    (v.schedule.trim().split(/\s+/).length !== 6 && !/\bH\b/.test(v.schedule));
  const verdicts = new Map<string, boolean>();
  for (const line of lines.trim().split("\n")) {
    const v = JSON.parse(line) as { schedule: string; seconds?: true; class: string; error?: true };
    if (isJudged(v) && !v.class.startsWith("zone names")) verdicts.set(v.schedule, !v.error);
  }
  const wrong: string[] = [];
  const judge = async ([schedule, valid]: [string, boolean]): Promise<void> => {
    const m = manifest((changed) => (changed.spec.schedule = schedule));
    const refusals = await refusalsOf(client(), lockedCronJobs, m);
    if ((refusals.length === 0) !== valid) wrong.push(`${schedule}: ${refusals.join("; ")}`);
  };
  // A few at a time: each has only so long to be answered, and the client holds back what is too many.
  const left = [...verdicts];
  while (left.length > 0) await Promise.all(left.splice(0, 16).map(judge));
  expect(wrong).toEqual([]);
  expect(verdicts.size).toBeGreaterThan(900);
});

test("these defaults are stored, and the template is left as it was written", async () => {
  const object = objectOf(lockedCronJobs, manifest(), "default");
  const created = await client().create(lockedCronJobs, object, { dryRun: true });
  const { jobTemplate, ...rest } = created.spec;
  expect(rest).toEqual({
    schedule: "*/5 * * * *",
    concurrencyPolicy: "Forbid",
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
    lock: {
      leaseSeconds: 30,
      atLeastSeconds: 0,
      onLost: "Continue",
      retryIntervalSeconds: 1,
      waitSeconds: 0,
    },
  });
  expect(jobTemplate).toEqual(manifest().spec.jobTemplate);
});
