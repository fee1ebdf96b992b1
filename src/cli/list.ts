/** `lockedcron list`: every LockedCronJob with what it does now and next. */
import type { LockedCronJob } from "../api/types.ts";
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

const USAGE = `Usage: lockedcron list [options]

Lists LockedCronJobs, soonest first: what runs, what comes next, and whether something is wrong.

  -A, --all-namespaces  of the whole cluster
  --not-ready           only those whose condition Ready is not True
${CLUSTER_USAGE}
Exit code: 0, 1 when the cluster cannot be asked, 2 for a wrong call.
`;

export const list: Command = {
  async run(argv, io) {
    const flags = readFlags(argv, {
      ...CLUSTER_FLAGS,
      "all-namespaces": { type: "boolean", short: "A" },
      "not-ready": { type: "boolean" },
    });
    if (flags.values.help === true) {
      await io.out(USAGE);
      return 0;
    }
    for (const word of flags.positionals) flags.problems.push(`${quote(word)}: belongs to no flag`);
    if (flags.problems.length > 0) return misuse(io, "list", flags.problems);
    const all = flags.values["all-namespaces"] === true;
    return withCluster(io, "list", flags, async ({ client, namespace }) => {
      const { items } = await client.list(lockedCronJobs, all ? {} : { namespace });
      const shown = items
        .filter((item) => flags.values["not-ready"] !== true || readiness(item) !== "True")
        .toSorted(soonestFirst);
      if (shown.length === 0) {
        io.error(`No LockedCronJobs found${all ? "" : ` in namespace ${namespace}`}.\n`);
        return 0;
      }
      await io.out(rowsOf(shown, all, io.now()));
      return 0;
    });
  },
};

function soonestFirst(a: LockedCronJob, b: LockedCronJob): number {
  // Times of one form sort as text; those without come last.
  const [x, y] = [a, b].map(({ status }) => status?.nextScheduleTime ?? "~") as [string, string];
  return x.localeCompare(y) || a.metadata.name.localeCompare(b.metadata.name);
}

function rowsOf(items: readonly LockedCronJob[], withNamespace: boolean, now: number): string {
  const head = ["NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST", "NEXT", "READY"];
  const rows = items.map((item) => {
    const { metadata, spec, status } = item;
    return [
      ...(withNamespace ? [metadata.namespace] : []),
      metadata.name,
      scheduleText(item),
      spec.timeZone ?? "UTC",
      spec.suspend === true ? "yes" : "no",
      String(status?.activeCount ?? 0),
      ago(status?.lastScheduleTime, now),
      status?.nextScheduleTime ?? "-",
      readiness(item),
    ];
  });
  return table([[...(withNamespace ? ["NAMESPACE"] : []), ...head], ...rows]);
}

/** True, or why not. */
function readiness({ status }: LockedCronJob): string {
  const ready = status?.conditions?.find((condition) => condition.type === "Ready");
  if (ready === undefined) return "Unknown";
  return ready.status === "True" ? "True" : ready.reason;
}
