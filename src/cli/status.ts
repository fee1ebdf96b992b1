/** `lockedcron status`: one LockedCronJob in full: next times, lock, conditions, runs, decisions. */
import type { Job, LockedCronJob } from "../api/types.ts";
import { NAME_LABEL } from "../api/names.ts";
import { resourceType } from "../kube/index.ts";
import {
  ago,
  CLUSTER_FLAGS,
  CLUSTER_USAGE,
  lockedCronJobs,
  scheduleText,
  table,
  withCluster,
} from "./cluster.ts";
import { misuse, type Command } from "./command.ts";
import { quote, readFlags } from "./flags.ts";

const USAGE = `Usage: lockedcron status NAME [options]

Shows when a LockedCronJob runs next, who holds its lock, what its last runs were and why ticks ran or did not.

  -o, --output json     the object's status as JSON
${CLUSTER_USAGE}
Exit code: 0, 1 when it is not there or the cluster cannot be asked, 2 for a wrong call.
`;

const jobs = resourceType<Job>("batch/v1", "Job", "jobs");
const LAST_RUNS = 10;

export const status: Command = {
  async run(argv, io) {
    const flags = readFlags(argv, { ...CLUSTER_FLAGS, output: { type: "string", short: "o" } });
    if (flags.values.help === true) {
      await io.out(USAGE);
      return 0;
    }
    const [name, ...others] = flags.positionals;
    if (name === undefined) flags.problems.push("no name is given");
    for (const word of others) flags.problems.push(`${quote(word)}: one name at a time`);
    const { output } = flags.values;
    if (output !== undefined && output !== "json") {
      flags.problems.push(`--output: ${quote(output)} is not json`);
    }
    if (flags.problems.length > 0 || name === undefined)
      return misuse(io, "status", flags.problems);
    return withCluster(io, "status", flags, async ({ client, namespace }) => {
      const object = await client.get(lockedCronJobs, { namespace, name });
      if (output === "json") {
        await io.out(`${JSON.stringify(object.status ?? {}, null, 2)}\n`);
        return 0;
      }
      const { items } = await client.list(jobs, {
        namespace,
        labelSelector: `${NAME_LABEL}=${name}`,
      });
      await io.out(describe(object, items, io.now()));
      return 0;
    });
  },
};

export function describe(object: LockedCronJob, runs: readonly Job[], now: number): string {
  const { metadata, spec, status: s = {} } = object;
  const resolved = (s.resolvedSchedules ?? []).map(
    (one) => `${one.name === undefined ? "" : `${one.name}: `}${one.schedule} (${one.timeZone})`,
  );
  const behind = (s.observedGeneration ?? 0) < (metadata.generation ?? 0);
  const facts = table([
    ["Name:", `${metadata.namespace}/${metadata.name}`],
    ["Schedule:", `${scheduleText(object)} (${spec.timeZone ?? "UTC"})`],
    ...(resolved.length > 0 ? [["Resolved:", resolved.join("; ")]] : []),
    ["Suspended:", spec.suspend === true ? "yes" : "no"],
    ["Policy:", spec.concurrencyPolicy ?? "Forbid"],
    ["Last tick:", timeAndAge(s.lastScheduleTime, now)],
    ["Last success:", timeAndAge(s.lastSuccessfulTime, now)],
    ["Last failure:", timeAndAge(s.lastFailureTime, now)],
    ["Failures in a row:", String(s.consecutiveFailures ?? 0)],
    [
      "Lock:",
      s.lock?.holder === undefined ? "free" : `held by ${s.lock.holder} (${s.lock.key ?? ""})`,
    ],
    ["Token:", String(s.token ?? 0)],
    ["Time zones:", s.tzdata ?? "-"],
  ]);
  const note = behind
    ? "The operator has not seen the newest edit yet: what follows is older.\n\n"
    : "";
  return [
    note + facts,
    section(
      "Next",
      (s.nextScheduleTimes ?? []).map((time) => [time, ago(time, now)]),
    ),
    section(
      "Conditions",
      (s.conditions ?? []).map((c) => [c.type, c.status, c.reason, c.message]),
    ),
    section("Runs", runRows(runs, now)),
    section(
      "Decisions",
      (s.decisions ?? [])
        .toReversed()
        .map((d) => [d.time, d.tick, d.decision, d.reason, d.message]),
    ),
  ].join("");
}

function runRows(runs: readonly Job[], now: number): string[][] {
  return runs
    .toSorted((a, b) => b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp))
    .slice(0, LAST_RUNS)
    .map((job) => {
      const end = job.status?.conditions?.find(
        ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
      );
      return [job.metadata.name, end?.type ?? "Running", ago(job.metadata.creationTimestamp, now)];
    });
}

function section(title: string, rows: readonly (readonly string[])[]): string {
  const body = rows.length === 0 ? "none\n" : table(rows);
  return `\n${title}:\n${body.replaceAll(/^/gm, "  ").trimEnd()}\n`;
}

function timeAndAge(time: string | undefined, now: number): string {
  return time === undefined ? "-" : `${time} (${ago(time, now)})`;
}
