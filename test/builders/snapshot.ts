import { keyOf } from "../../src/api/names.ts";
import type { LockedCronJob } from "../../src/api/types.ts";
import type { AttemptFate, LedgerState, Snapshot } from "../../src/domain/decide/index.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { parseSpec } from "../../src/domain/schedule/index.ts";
import { aLedger, aLockedCronJob, NOON } from "./objects.ts";

export function present(ledger: Ledger): LedgerState {
  return { state: "present", ledger };
}

/**
 * What the first replica in line sees one second after noon: a tick is due and nothing was done about it. Every attempt is
 * somebody else's and may still arrive, and every step is ours to take.
 */
export function aSnapshot(fields: Partial<Snapshot> & { fate?: AttemptFate } = {}): Snapshot {
  const { fate = "foreign", ...rest } = fields;
  const owner: LockedCronJob | undefined = "owner" in fields ? fields.owner : aLockedCronJob();
  return {
    now: NOON + 1_000,
    clockSkewMs: 0,
    owner,
    schedule:
      owner === undefined
        ? undefined
        : parseSpec(owner.spec, keyOf(owner.metadata.namespace, owner.metadata.name)),
    ledger: present(aLedger()),
    jobs: [],
    rank: 0,
    standByMs: 0,
    fateOf: () => fate,
    oursAt: () => 0,
    askedForMs: () => 0,
    ...rest,
  };
}
