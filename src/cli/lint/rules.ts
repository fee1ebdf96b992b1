/** What the rules of the CRD say beyond its schema, and what the controller would say of the schedule. */
import { MAX_NAME_LENGTH } from "../../api/names.ts";
import type { LockedCronJobSpec, ScheduleSpec } from "../../api/types.ts";
import { describeClockChange, parseSpec } from "../../domain/schedule/index.ts";
import type { Path } from "../manifests.ts";
import type { Report } from "./schema.ts";

export interface Subject {
  name: string;
  namespace: string;
  spec: LockedCronJobSpec;
}

interface Rule {
  path: Path;
  broken(spec: LockedCronJobSpec): boolean;
  message: string;
}

type JobSpec = {
  selector?: unknown;
  podFailurePolicy?: unknown;
  template?: { spec?: { restartPolicy?: unknown } };
};

const jobOf = (spec: LockedCronJobSpec): JobSpec => spec.jobTemplate.spec as JobSpec;

/** The CEL rules of tools/crd, one by one; a test holds that none is missing here. */
export const RULES: readonly Rule[] = [
  {
    path: ["spec", "schedule"],
    broken: (spec) => spec.schedule === undefined && spec.schedules === undefined,
    message: "Required value: set it, or schedules for several",
  },
  {
    path: ["spec", "schedules"],
    broken: (spec) => spec.schedule !== undefined && spec.schedules !== undefined,
    message: "Forbidden: cannot be set together with schedule: put all of them here",
  },
  {
    path: ["spec", "schedules"],
    broken: ({ schedules = [] }) => {
      const names = schedules.flatMap(({ name }) => name ?? []);
      return new Set(names).size < names.length;
    },
    message: "Invalid value: names must be unique",
  },
  {
    path: ["spec", "notAfter"],
    broken: ({ notBefore, notAfter }) =>
      notBefore !== undefined &&
      notAfter !== undefined &&
      Date.parse(notBefore) > Date.parse(notAfter),
    message: "Invalid value: must not be before notBefore",
  },
  {
    path: ["spec", "catchUp", "policy"],
    broken: (spec) => spec.catchUp?.policy === "All" && spec.concurrencyPolicy === "Replace",
    message:
      "Invalid value: cannot be All with concurrencyPolicy Replace: each run would end the one before",
  },
  {
    path: ["spec", "catchUp", "policy"],
    broken: (spec) =>
      spec.catchUp?.policy !== undefined &&
      spec.catchUp.policy !== "All" &&
      spec.concurrencyPolicy === "Queue",
    message:
      "Invalid value: must be All or absent with concurrencyPolicy Queue, which runs every tick",
  },
  {
    path: ["spec", "queueLimit"],
    broken: (spec) => spec.queueLimit !== undefined && spec.concurrencyPolicy !== "Queue",
    message: "Invalid value: is for concurrencyPolicy Queue only",
  },
  {
    path: ["spec", "lock", "atLeastSeconds"],
    broken: ({ lock }) => (lock?.atLeastSeconds ?? 0) > (lock?.atMostSeconds ?? Infinity),
    message: "Invalid value: atLeastSeconds must not be more than atMostSeconds",
  },
  {
    path: ["spec", "jobTemplate", "spec", "selector"],
    broken: (spec) => jobOf(spec).selector !== undefined,
    message: "Invalid value: `selector` will be auto-generated",
  },
  {
    path: ["spec", "jobTemplate", "spec", "template", "spec", "restartPolicy"],
    broken: (spec) =>
      jobOf(spec).podFailurePolicy !== undefined &&
      jobOf(spec).template?.spec?.restartPolicy !== "Never",
    message: 'Invalid value: only "Never" is supported when podFailurePolicy is specified',
  },
];

/** Only for a spec whose fields are of the types that they should be of. */
export function checkRules({ name, namespace, spec }: Subject, error: Report): void {
  if (name.length > MAX_NAME_LENGTH) {
    error(
      ["metadata", "name"],
      `Invalid value: ${JSON.stringify(name)}: must be no more than ${MAX_NAME_LENGTH} characters`,
    );
  }
  for (const rule of RULES) if (rule.broken(spec)) error(rule.path, rule.message);
  if ((spec.schedule === undefined) === (spec.schedules === undefined)) return;
  const identity = `${namespace}/${name}`;
  if (spec.schedules === undefined) return checkSchedule(spec, identity, ["spec"], error);
  // One by one: together they would be told of the first mistake only.
  for (const [i, entry] of spec.schedules.entries()) {
    const alone = { ...spec, schedules: [entry] };
    checkSchedule(alone, identity, ["spec", "schedules", i], error);
  }
}

function checkSchedule(spec: ScheduleSpec, identity: string, path: Path, error: Report): void {
  const parsed = parseSpec(spec, identity);
  if (parsed.ok) return;
  const message = `${parsed.reason}: ${parsed.message.replace(/^schedules\[0\]: /, "")}`;
  const window = /^(notBefore|notAfter) /.exec(parsed.message)?.[1];
  if (window !== undefined) return error(["spec", window], message);
  if (parsed.reason === "UnparseableSchedule") return error([...path, "schedule"], message);
  const own = spec.schedules?.[0]?.timeZone !== undefined;
  error([...(own ? path : ["spec"]), "timeZone"], message);
  // An unknown zone is found first and must not hide a mistake in the expression.
  const { timeZone: _, ...anywhere } = spec;
  const schedules = spec.schedules?.map(({ schedule }) => ({ schedule }));
  checkSchedule({ ...anywhere, ...(schedules && { schedules }) }, identity, path, error);
}

/** What is allowed and may not be what was meant; `now` in ms. */
export function checkDoubts({ name, namespace, spec }: Subject, now: number, warn: Report): void {
  const parsed = parseSpec(spec, `${namespace}/${name}`);
  if (!parsed.ok) return;
  const { schedule } = parsed;
  const where: Path = ["spec", spec.schedules === undefined ? "schedule" : "schedules"];
  if (schedule.next(now) === null) warn(where, "has no tick in the coming five years");
  for (const change of schedule.clockChanges(now)) warn(where, describeClockChange(change));
  if (spec.concurrencyPolicy === undefined) {
    warn(["spec"], "concurrencyPolicy is Forbid when it is left out, where a CronJob has Allow");
  }
}
