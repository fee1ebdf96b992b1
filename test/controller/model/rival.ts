/** The rival for the mutex as the API server shows it, and what must never be between it and our runs. */
import { LEDGER_ANNOTATION, ledgerName } from "../../../src/api/names.ts";
import type { Lease } from "../../../src/api/types.ts";
import { holderOf } from "../../../src/domain/lock-terms.ts";
import { serializeLedger } from "../../../src/domain/ledger-json.ts";
import { aLedger, aStartedRun, MINUTE } from "../../builders/objects.ts";
import { once } from "./memo.ts";
import type { Rival, World } from "./types.ts";

export const RIVAL_KEY = "team/rival";

const lockValue = (run: number): string => `rival-${run}.owner-r#x`;

export function rivalHolder({ run }: Rival): string {
  return holderOf(RIVAL_KEY, lockValue(run));
}

/** Its ledger knows the run from before its first fence until it is over. */
export function rivalLedger({ rival }: World): Lease | undefined {
  if (rival === undefined || rival.ledgerLost) return undefined;
  return once(rival, "ledger", () => {
    const run = aStartedRun({
      runId: `rival-${rival.run}.owner-r`,
      lockValue: lockValue(rival.run),
    });
    const ledger = aLedger({ owner: "owner-r", runs: rival.phase === "over" ? [] : [run] });
    const name = ledgerName("rival");
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: {
        name,
        namespace: "team",
        uid: "lease-rival",
        resourceVersion: `${rival.run}${rival.phase.length}`,
        creationTimestamp: "",
        annotations: { [LEDGER_ANNOTATION]: serializeLedger(ledger) },
      },
    };
  });
}

export function podsNamed({ rival, pods, created }: World, jobName: string): object[] {
  if (rival?.phase === "running" && jobName === `rival-${rival.run}`) return [rival];
  return pods.filter(({ jobUid }) => {
    const made = created[Number(jobUid.slice("job-".length)) - 1];
    return made !== undefined && jobName === `report-${made.tick / MINUTE}`;
  });
}

export const TOGETHER = "two runs that share a mutex are active at once";

/** Judged when a Job of ours is made. */
export function brokenByRival({ rival }: World, token: number): string | undefined {
  if (rival?.phase === "running") return TOGETHER;
  if (rival !== undefined && token <= rival.token) return "the token of a mutex did not grow";
  return undefined;
}

/** Judged when the rival's pods start. */
export function brokenByUs({ pods, created }: World, token: number): string | undefined {
  if (pods.length > 0) return TOGETHER;
  return created.some((c) => c.token >= token) ? "the token of a mutex did not grow" : undefined;
}
