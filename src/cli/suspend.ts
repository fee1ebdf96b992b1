/** `lockedcron suspend` and `lockedcron resume`: no new runs start, or they do again. */
import type { LockedCronJob } from "../api/types.ts";
import { CLUSTER_FLAGS, CLUSTER_USAGE, lockedCronJobs, withCluster } from "./cluster.ts";
import { misuse, type Command, type ExitCode } from "./command.ts";
import { readFlags } from "./flags.ts";
import { hasReason } from "../kube/index.ts";

interface Way {
  command: "suspend" | "resume";
  suspend: boolean;
  what: string;
}

const usage = ({ command, what }: Way): string => `Usage: lockedcron ${command} NAME... [options]

${what}

${CLUSTER_USAGE}
Exit code: 0, 1 when one of them could not be changed, 2 for a wrong call.
`;

function setSuspend(way: Way): Command {
  const { command } = way;
  return {
    async run(argv, io) {
      const flags = readFlags(argv, CLUSTER_FLAGS);
      if (flags.values.help === true) {
        await io.out(usage(way));
        return 0;
      }
      const names = [...new Set(flags.positionals)];
      if (names.length === 0) flags.problems.push("no name is given");
      if (flags.problems.length > 0) return misuse(io, command, flags.problems);
      return withCluster(io, command, flags, async ({ client, namespace }) => {
        let code: ExitCode = 0;
        for (const name of names) {
          try {
            const before = await client.get(lockedCronJobs, { namespace, name });
            const already = (before.spec.suspend ?? false) === way.suspend;
            if (!already) {
              await client.patch(
                lockedCronJobs,
                { namespace, name },
                // The uid makes sure that it is the one which was looked at.
                {
                  type: "merge",
                  body: { metadata: { uid: before.metadata.uid }, spec: { suspend: way.suspend } },
                },
                { fieldManager: "lockedcron-cli" },
              );
            }
            await io.out(`${namespace}/${name}: ${said(before, way, already)}\n`);
          } catch (error) {
            if (!hasReason(error, "NotFound", "Conflict", "Invalid")) throw error;
            io.error(`lockedcron ${command}: ${(error as Error).message}\n`);
            code = 1;
          }
        }
        return code;
      });
    },
  };
}

function said({ spec, status }: LockedCronJob, { suspend }: Way, already: boolean): string {
  const state = suspend ? "suspended" : "not suspended";
  if (already) return `${state} already`;
  const active = status?.activeCount ?? 0;
  if (suspend) return active > 0 ? `suspended; ${active} active goes on` : "suspended";
  return spec.onResume === "FromNow"
    ? "resumed; ticks count from now on"
    : "resumed; what was missed meanwhile is caught up as catchUp says";
}

export const suspend = setSuspend({
  command: "suspend",
  suspend: true,
  what: "From now on no new runs start. Runs that are active go on.",
});

export const resume = setSuspend({
  command: "resume",
  suspend: false,
  what: "Runs start again. What becomes of the ticks of the suspension, spec.onResume says.",
});
