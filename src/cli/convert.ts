/** `lockedcron convert`: CronJob to LockedCronJob and back. Comments and the order of fields stay. */
import { isMap, type Document } from "yaml";
import { API_VERSION, KIND } from "../api/names.ts";
import type { LockedCronJobSpec } from "../api/types.ts";
import { parseSpec } from "../domain/schedule/index.ts";
import { misuse, type Command } from "./command.ts";
import schema from "./crd-schema.json" with { type: "json" };
import { readFlags } from "./flags.ts";
import { checkSchema, type Schema } from "./lint/schema.ts";
import { readManifests, type Manifest } from "./manifests.ts";

const USAGE = `Usage: lockedcron convert FILE... [options]

Prints the manifests with each CronJob as a LockedCronJob that does the same; with --to cronjob each LockedCronJob as a
CronJob, and says on standard error what a CronJob cannot do. Other objects are printed as they are.

  -f, --filename FILE  the same as FILE; - is standard input; may be given more than once
  --to KIND            lockedcronjob or cronjob (default: lockedcronjob)
  --suspend            what goes over is suspended, so that it runs nothing yet (docs/migrate.md)
  -h, --help           this text

What the cluster has added (status, uid, managedFields and the like) is left out.
Exit code: 0, 1 when something cannot go over or a file cannot be read, 2 for a wrong call.
`;

const TARGETS = ["lockedcronjob", "cronjob"];
const NATIVE = { apiVersion: "batch/v1", kind: "CronJob" };
/** Written by the cluster, and wrong in a manifest. */
const SERVER_FIELDS = [
  ["status"],
  ["metadata", "uid"],
  ["metadata", "resourceVersion"],
  ["metadata", "generation"],
  ["metadata", "creationTimestamp"],
  ["metadata", "managedFields"],
  ["metadata", "selfLink"],
  ["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"],
];

export const convert: Command = {
  async run(argv, io) {
    const flags = readFlags(argv, {
      filename: { type: "string", short: "f", multiple: true },
      to: { type: "string" },
      suspend: { type: "boolean" },
    });
    if (flags.values.help === true) {
      await io.out(USAGE);
      return 0;
    }
    const files = [...(flags.lists.filename ?? []), ...flags.positionals];
    const target = flags.values.to ?? TARGETS[0];
    if (files.length === 0)
      flags.problems.push("no file is given: name one, or - for standard input");
    if (!TARGETS.includes(String(target))) {
      flags.problems.push(`--to: ${JSON.stringify(target)} is neither ${TARGETS.join(" nor ")}`);
    }
    if (flags.problems.length > 0) return misuse(io, "convert", flags.problems);

    const { manifests, unreadable } = await readManifests(io, files);
    let left = unreadable.length;
    for (const { file, line, message } of unreadable) {
      io.error(`${file}${line === undefined ? "" : `:${line}`}: ${message}\n`);
    }
    const texts: string[] = [];
    const over = {
      from: target === "cronjob" ? KIND : NATIVE.kind,
      to: target === "cronjob" ? toCronJob : toLockedCronJob,
    };
    for (const manifest of manifests) {
      for (const document of itemsOf(manifest)) {
        const isMeant = document.getIn(["kind"]) === over.from;
        if (isMeant && flags.values.suspend === true) document.setIn(["spec", "suspend"], true);
        const lost = isMeant ? over.to(document) : [];
        left += lost.length;
        const name = textIn(document, ["metadata", "name"]) ?? "?";
        for (const text of lost) io.error(`${manifest.file}: ${name}: ${text}\n`);
      }
      texts.push(manifest.document.toString({ lineWidth: 0 }));
    }
    await io.out(texts.join(texts.some((text) => text.startsWith("---")) ? "" : "---\n"));
    return left > 0 ? 1 : 0;
  },
};

/** An object, or a view on each of the objects of a List (`kubectl get cronjobs -o yaml`). */
function itemsOf({ document, value }: Manifest): Editable[] {
  if (!Array.isArray(value.items)) return [document];
  return value.items.map((_, i) => {
    const node = document.getIn(["items", i], true);
    return isMap(node) ? node : document;
  });
}

/** What a document and a node of it have in common. */
type Editable = Pick<Document, "getIn" | "setIn" | "deleteIn" | "hasIn">;

/** Nothing of a CronJob is lost. */
function toLockedCronJob(object: Editable): string[] {
  object.setIn(["apiVersion"], API_VERSION);
  object.setIn(["kind"], KIND);
  dropServerFields(object);
  // The defaults differ: what was left out there, or left empty, is to be said here.
  if ((object.getIn(["spec", "concurrencyPolicy"]) ?? "") === "") {
    object.setIn(["spec", "concurrencyPolicy"], "Allow");
  }
  return [];
}

/** Returns what cannot go over. */
function toCronJob(object: Editable): string[] {
  const node = object.getIn(["spec"], true);
  const spec: unknown = isMap(node) ? node.toJSON() : undefined;
  let invalid = !isSpec(spec);
  checkSchema(schema.properties.spec as Schema, spec, [], () => {
    invalid = true;
  });
  if (invalid || !isSpec(spec))
    return ["is left as it is, for it is not valid: see lockedcron lint"];
  const lost = [...scheduleOver(object, spec), ...policiesOver(object, spec)];
  object.setIn(["apiVersion"], NATIVE.apiVersion);
  object.setIn(["kind"], NATIVE.kind);
  dropServerFields(object);
  return lost;
}

function isSpec(value: unknown): value is LockedCronJobSpec {
  return typeof value === "object" && value !== null;
}

function textIn(object: Editable, path: string[]): string | undefined {
  const value = object.getIn(path);
  return typeof value === "string" ? value : undefined;
}

function scheduleOver(object: Editable, spec: LockedCronJobSpec): string[] {
  const lost: string[] = [];
  const namespace = textIn(object, ["metadata", "namespace"]) ?? "default";
  const identity = `${namespace}/${textIn(object, ["metadata", "name"]) ?? ""}`;
  const parsed = parseSpec(spec, identity);
  if (!parsed.ok) return [`the schedule is left as it is: ${parsed.message}`];
  const { resolved, subMinute, intervalSeconds } = parsed.schedule;
  const [first, ...more] = resolved;
  if (first !== undefined) {
    const six = subMinute && intervalSeconds === null;
    const schedule = six ? first.schedule.trim().split(/\s+/).slice(1).join(" ") : first.schedule;
    object.setIn(["spec", "schedule"], schedule);
    if (first.timeZone !== "UTC" || spec.timeZone !== undefined) {
      object.setIn(["spec", "timeZone"], first.timeZone);
    }
    if (six) {
      lost.push(`spec.schedule: ${JSON.stringify(first.schedule)} has seconds, a CronJob has none`);
    }
  }
  if (spec.schedules !== undefined) object.deleteIn(["spec", "schedules"]);
  for (const other of more) {
    lost.push(
      `spec.schedules: a CronJob has one schedule; make another one for ${JSON.stringify(other.schedule)} in ${other.timeZone}`,
    );
  }
  // H went over as the numbers that it stood for.
  if (spec.hashSeed !== undefined) object.deleteIn(["spec", "hashSeed"]);
  return lost;
}

const LOCK = "locks are none of a CronJob: two runs may overlap when the controller is restarted";

function policiesOver(object: Editable, spec: LockedCronJobSpec): string[] {
  const lost: string[] = [];
  const drop = (field: keyof LockedCronJobSpec, harmless: unknown, why: string): void => {
    if (spec[field] === undefined) return;
    object.deleteIn(["spec", field]);
    if (spec[field] !== harmless) lost.push(`spec.${field}: ${why}`);
  };
  const { concurrencyPolicy = "Forbid" } = spec;
  const native = ["Allow", "Forbid", "Replace"].includes(concurrencyPolicy);
  object.setIn(["spec", "concurrencyPolicy"], native ? concurrencyPolicy : "Forbid");
  if (!native) {
    lost.push(
      `spec.concurrencyPolicy: ${concurrencyPolicy} is no policy of a CronJob; it has Forbid now, which runs the latest ` +
        "tick late",
    );
  }
  drop("dstPolicy", "Kubernetes", "a CronJob runs as with dstPolicy Kubernetes");
  drop("jitterSeconds", 0, "a CronJob has no jitter");
  drop("notBefore", undefined, "a CronJob has no window: suspend it until then");
  drop("notAfter", undefined, "a CronJob has no window: suspend it from then on");
  drop("queueLimit", undefined, "a CronJob has no queue");
  drop("catchUp", undefined, "a CronJob catches the latest missed tick up, and no other");
  drop("onResume", "CatchUp", "a CronJob catches the latest tick of a suspension up");
  drop("onScheduleChange", "CatchUp", "a CronJob may run a tick that only the new schedule had");
  drop("lock", undefined, LOCK);
  return lost;
}

function dropServerFields(object: Editable): void {
  for (const path of SERVER_FIELDS) if (object.hasIn(path)) object.deleteIn(path);
  const annotations = object.getIn(["metadata", "annotations"]);
  if (isMap(annotations) && annotations.items.length === 0) {
    object.deleteIn(["metadata", "annotations"]);
  }
}
