/**
 * The invalid manifests of Kubernetes' own tests (pkg/apis/batch/validation, TestValidateCronJob and
 * TestValidateCronJobScheduleTZ), sent to the same API server as both kinds.
 */
import { describe, expect, test } from "vitest";
import { cronJobs, lockedCronJobs, manifest, refusalsOf, type Manifest } from "./fixture.ts";
import { useCrd } from "./suite.ts";

const client = useCrd();

const set = (fields: object) => (m: Manifest) => void Object.assign(m.spec, fields);
const setJob = (fields: object) => (m: Manifest) =>
  void Object.assign(m.spec.jobTemplate.spec, fields);
const setPod = (fields: object) => (m: Manifest) =>
  void Object.assign(m.spec.jobTemplate.spec.template.spec, fields);

const JOB = "spec.jobTemplate.spec";
const POD = `${JOB}.template.spec`;
const FORMS =
  "expected exactly 5 fields (minute, hour, day of month, month, day of week), 6 with the second first, one of " +
  "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or @every and a duration such as 1h30m";

/** What the API server says of a CronJob, and, where that is something else, of a LockedCronJob. */
type Row = [mistake: string, change: (m: Manifest) => void, native: string[], ours?: string[]];

/** In the words that the API server has for a bound of any custom resource. */
const negative = (path: string, change: (m: Manifest) => void): Row => [
  `a negative ${path.split(".").at(-1)}`,
  change,
  [`${path}: Invalid value: -1: must be greater than or equal to 0`],
  [`${path}: Invalid value: -1: ${path} in body should be greater than or equal to 0`],
];
const timeZone = (name: string): Row => [
  `the zone ${JSON.stringify(name)}`,
  set({ timeZone: name }),
  [`spec.timeZone: Invalid value: ${JSON.stringify(name)}: unknown time zone ${name}`],
  // The API server trims what a rule of a custom resource says.
  [`spec.timeZone: Invalid value: ${JSON.stringify(name)}: unknown time zone ${name}`.trimEnd()],
];
const zoneIn = (variable: string): Row => [
  `${variable} in the schedule`,
  set({ schedule: `${variable}=UTC 0 * * * *` }),
  [
    `spec.schedule: Invalid value: "${variable}=UTC 0 * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`,
  ],
];

const SAME_FIELD: Row[] = [
  [
    "a word as schedule",
    set({ schedule: "error" }),
    ['spec.schedule: Invalid value: "error": expected exactly 5 fields, found 1: [error]'],
    // Better: says what may stand there. The second is one of several rules that look at the fields one by one.
    [
      `spec.schedule: Invalid value: "error": ${FORMS}`,
      'spec.schedule: Invalid value: "error": minute: expected *, H, or numbers and ranges within 0-59 separated by commas, each with an optional /step',
    ],
  ],
  [
    "an empty schedule",
    set({ schedule: "" }),
    ["spec.schedule: Required value"],
    [`spec.schedule: Invalid value: "": ${FORMS}`],
  ],
  [
    "no schedule",
    (m) => delete m.spec.schedule,
    ["spec.schedule: Required value"],
    ["spec.schedule: Required value: set it, or schedules for several"],
  ],
  [
    "an empty zone",
    set({ timeZone: "" }),
    ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
  ],
  [
    "the zone of the machine",
    set({ timeZone: "Local" }),
    [
      'spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
    ],
  ],
  timeZone(" Continent/Zone"),
  timeZone(" "),
  timeZone("Continent/Zone "),
  zoneIn("TZ"),
  zoneIn("CRON_TZ"),
  negative("spec.startingDeadlineSeconds", set({ startingDeadlineSeconds: -1 })),
  negative("spec.successfulJobsHistoryLimit", set({ successfulJobsHistoryLimit: -1 })),
  negative("spec.failedJobsHistoryLimit", set({ failedJobsHistoryLimit: -1 })),
  negative(`${JOB}.parallelism`, setJob({ parallelism: -1 })),
  negative(`${JOB}.completions`, setJob({ completions: -1 })),
  negative(`${JOB}.activeDeadlineSeconds`, setJob({ activeDeadlineSeconds: -1 })),
  negative(`${JOB}.backoffLimit`, setJob({ backoffLimit: -1 })),
  negative(`${JOB}.ttlSecondsAfterFinished`, setJob({ ttlSecondsAfterFinished: -1 })),
  [
    "a policy that is none",
    set({ concurrencyPolicy: "Often" }),
    [
      'spec.concurrencyPolicy: Unsupported value: "Often": supported values: "Allow", "Forbid", "Replace"',
    ],
    [
      'spec.concurrencyPolicy: Unsupported value: "Often": supported values: "Allow", "Forbid", "Queue", "Replace", "Skip"',
    ],
  ],
  [
    "a selector",
    setJob({ selector: { matchLabels: { a: "b" } } }),
    [
      `${JOB}.selector: Invalid value: {"matchLabels":{"a":"b"}}: \`selector\` will be auto-generated`,
    ],
    [`${JOB}.selector: Invalid value: \`selector\` will be auto-generated`],
  ],
  [
    "a manual selector",
    setJob({ manualSelector: true }),
    [`${JOB}.manualSelector: Unsupported value: true: supported values: "nil", "false"`],
    // Better: nil is nothing that one could write.
    [`${JOB}.manualSelector: Unsupported value: true: supported values: "false"`],
  ],
  [
    "a name of 53 characters",
    (m) => (m.metadata.name = "10000000002000000000300000000040000000005000000000123"),
    [
      'metadata.name: Invalid value: "10000000002000000000300000000040000000005000000000123": must be no more than 52 characters',
    ],
    ["metadata.name: Invalid value: must be no more than 52 characters"],
  ],
  [
    "no restartPolicy",
    setPod({ restartPolicy: undefined }),
    [`${POD}.restartPolicy: Required value: valid values: "OnFailure", "Never"`],
    [`${POD}.restartPolicy: Required value`],
  ],
  [
    "a restartPolicy that is none",
    setPod({ restartPolicy: "Invalid" }),
    [
      `${POD}.restartPolicy: Unsupported value: "Invalid": supported values: "Always", "OnFailure", "Never"`,
      `${POD}.restartPolicy: Unsupported value: "Invalid": supported values: "OnFailure", "Never"`,
    ],
    // Better: Always is not to be had, so it is not offered.
    [`${POD}.restartPolicy: Unsupported value: "Invalid": supported values: "OnFailure", "Never"`],
  ],
  [
    "the restartPolicy Always",
    setPod({ restartPolicy: "Always" }),
    [`${POD}.restartPolicy: Required value: valid values: "OnFailure", "Never"`],
    // Better: it is there, and it is the wrong one.
    [`${POD}.restartPolicy: Unsupported value: "Always": supported values: "OnFailure", "Never"`],
  ],
  [
    "no containers",
    setPod({ containers: [] }),
    [`${POD}.containers: Required value`],
    [`${POD}.containers: Invalid value: 0: ${POD}.containers in body should have at least 1 items`],
  ],
];

describe("what is refused as a CronJob is refused as a LockedCronJob, for the same field", () => {
  test.each(SAME_FIELD)("%s", async (_, change, native, ours = native) => {
    expect(await refusalsOf(client(), cronJobs, manifest(change))).toEqual(native);
    expect(await refusalsOf(client(), lockedCronJobs, manifest(change))).toEqual(ours);
    const fieldsOf = (refusals: string[]) =>
      new Set(refusals.map((text) => text.split(": ", 1)[0]));
    expect(fieldsOf(ours)).toEqual(fieldsOf(native));
  });
});

describe("what only one of the two is refused for", () => {
  test.each<Row>([
    [
      // The operator says it: condition ScheduleValid, event UnknownTimeZone.
      "a zone that the tz database does not have",
      set({ timeZone: "Continent/InvalidZone" }),
      [
        'spec.timeZone: Invalid value: "Continent/InvalidZone": unknown time zone Continent/InvalidZone',
      ],
      [],
    ],
    [
      // Allow there, and Forbid here when it is left out: nobody is to guess.
      "an empty policy",
      set({ concurrencyPolicy: "" }),
      [],
      [
        'spec.concurrencyPolicy: Unsupported value: "": supported values: "Allow", "Forbid", "Queue", "Replace", "Skip"',
      ],
    ],
    [
      "no template at all, in other words",
      (m) => delete m.spec.jobTemplate,
      [
        `${POD}.containers: Required value`,
        `${POD}.restartPolicy: Required value: valid values: "OnFailure", "Never"`,
      ],
      ["spec.jobTemplate: Required value"],
    ],
  ])("%s", async (_, change, native, ours = native) => {
    expect(await refusalsOf(client(), cronJobs, manifest(change))).toEqual(native);
    expect(await refusalsOf(client(), lockedCronJobs, manifest(change))).toEqual(ours);
  });
});
