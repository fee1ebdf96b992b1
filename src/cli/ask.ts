/** `lockedcron trigger` and `lockedcron backfill`: they write the annotations of docs/manual-runs.md. */
import { randomUUID } from "node:crypto";
import {
  BACKFILL_ANNOTATION,
  TRIGGER_ANNOTATION,
  TRIGGER_POLICY_ANNOTATION,
} from "../api/names.ts";
import { parseInstant } from "../domain/schedule/index.ts";
import {
  CLUSTER_FLAGS,
  CLUSTER_USAGE,
  lockedCronJobs,
  withCluster,
  type Cluster,
} from "./cluster.ts";
import { misuse, type Command, type ExitCode, type Io } from "./command.ts";
import { quote, readFlags, type Flags } from "./flags.ts";

const TRIGGER_USAGE = `Usage: lockedcron trigger NAME [options]

Starts one run now, also while it is suspended. It moves no tick of the schedule.

  --id ID               what it is done once for (default: a new one)
  --override            beside whatever is active, instead of as concurrencyPolicy says
${CLUSTER_USAGE}
Exit code: 0 when it is asked for, 1 when that failed, 2 for a wrong call.
`;

const BACKFILL_USAGE = `Usage: lockedcron backfill NAME --from TIME --to TIME [options]

Runs the ticks of a past range again, oldest first, whether or not they ran before.

  --from TIME, --to TIME  RFC 3339, both included
  --policy POLICY         Forbid: one at a time, and only while no other run is active (default); Allow: all at once
  --id ID                 what it is done once for (default: a new one)
${CLUSTER_USAGE}
Exit code: 0 when it is asked for, 1 when that failed, 2 for a wrong call.
`;

export const trigger: Command = {
  async run(argv, io) {
    const flags = readFlags(argv, {
      ...CLUSTER_FLAGS,
      id: { type: "string" },
      override: { type: "boolean" },
    });
    if (flags.values.help === true) return help(io, TRIGGER_USAGE);
    const name = nameOf(flags);
    if (flags.problems.length > 0) return misuse(io, "trigger", flags.problems);
    const id = idOf(flags);
    const override = flags.values.override === true;
    return withCluster(io, "trigger", flags, async (cluster) => {
      const annotations = {
        [TRIGGER_ANNOTATION]: id,
        [TRIGGER_POLICY_ANNOTATION]: override ? "Override" : null,
      };
      await annotate(cluster, name, annotations);
      await io.out(`${cluster.namespace}/${name}: run asked for, id ${id}\n`);
      return 0;
    });
  },
};

export const backfill: Command = {
  async run(argv, io) {
    const flags = readFlags(argv, {
      ...CLUSTER_FLAGS,
      id: { type: "string" },
      from: { type: "string" },
      to: { type: "string" },
      policy: { type: "string" },
    });
    if (flags.values.help === true) return help(io, BACKFILL_USAGE);
    const name = nameOf(flags);
    const [from, to] = [instantOf(flags, "from"), instantOf(flags, "to")];
    if (from > to) flags.problems.push("--to: is before --from");
    const { policy = "Forbid" } = flags.values;
    if (policy !== "Forbid" && policy !== "Allow") {
      flags.problems.push(`--policy: ${quote(policy)} is neither Forbid nor Allow`);
    }
    if (flags.problems.length > 0) return misuse(io, "backfill", flags.problems);
    const id = idOf(flags);
    return withCluster(io, "backfill", flags, async (cluster) => {
      const range = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
      await annotate(cluster, name, {
        [BACKFILL_ANNOTATION]: JSON.stringify({ id, ...range, policy }),
      });
      await io.out(`${cluster.namespace}/${name}: backfill asked for, id ${id}\n`);
      return 0;
    });
  },
};

async function help(io: Io, usage: string): Promise<ExitCode> {
  await io.out(usage);
  return 0;
}

function nameOf({ positionals, problems }: Flags): string {
  const [name, ...others] = positionals;
  if (name === undefined) problems.push("no name is given");
  for (const word of others) problems.push(`${quote(word)}: one name at a time`);
  return name ?? "";
}

function idOf({ values }: Flags): string {
  return typeof values.id === "string" && values.id !== "" ? values.id : randomUUID();
}

function instantOf({ values, problems }: Flags, flag: "from" | "to"): number {
  const text = values[flag];
  if (text === undefined) {
    problems.push(`--${flag}: is required, e.g. 2026-01-31T00:00:00Z`);
    return Number.NaN;
  }
  const at = parseInstant(String(text));
  if (at === null) {
    problems.push(`--${flag}: ${quote(text)} is no RFC 3339 time, e.g. 2026-01-31T00:00:00Z`);
  }
  return at ?? Number.NaN;
}

async function annotate(
  { client, namespace }: Cluster,
  name: string,
  annotations: Record<string, string | null>,
): Promise<void> {
  await client.patch(
    lockedCronJobs,
    { namespace, name },
    { type: "merge", body: { metadata: { annotations } } },
    { fieldManager: "lockedcron-cli" },
  );
}
