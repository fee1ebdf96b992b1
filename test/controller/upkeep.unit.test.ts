import { describe, expect, it } from "vitest";
import { letGo } from "../../src/controller/ledger-effects.ts";
import { upkeepOf } from "../../src/controller/upkeep.ts";
import type { Decision } from "../../src/domain/decide/index.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { conflict } from "../builders/client.ts";
import { aContext, aRecord } from "../builders/context.ts";
import {
  aJobView,
  aLedger,
  aLockedCronJob,
  aRun,
  aStartedRun,
  at,
  NOON,
} from "../builders/objects.ts";
import { aSnapshot, present } from "../builders/snapshot.ts";

const nothing: Decision = { do: "nothing", reason: "NotDue", message: "", at: NOON + 5 };
const old = aJobView({ outcome: "Complete", hasLaunchFinalizer: false });

function upkeep(ledger: Ledger, fields: Parameters<typeof aSnapshot>[0] = {}, held = true) {
  const snapshot = aSnapshot({ ledger: present(ledger), ...fields });
  return upkeepOf(snapshot, aRecord(ledger, { heldInDeletion: held }), nothing);
}

describe("a ledger that was deleted and is held by its finalizer", () => {
  type Case = [
    situation: string,
    ledger: Ledger,
    fields: Parameters<typeof aSnapshot>[0],
    goes: boolean,
  ];
  it.each<Case>([
    ["goes when it is at rest", aLedger(), {}, true],
    ["stays while a run is active", aLedger({ runs: [aStartedRun()] }), {}, false],
    ["stays while a POST may still arrive", aLedger({ runs: [aRun()] }), {}, false],
    [
      "goes with its LockedCronJob as soon as no POST can arrive",
      aLedger({ runs: [aStartedRun()] }),
      { owner: undefined },
      true,
    ],
    [
      "stays without its LockedCronJob while one may",
      aLedger({ runs: [aRun()] }),
      { owner: undefined },
      false,
    ],
    ["is left to the first in line", aLedger(), { rank: 1 }, false],
  ])("%s", (_, ledger, fields, goes) => {
    expect(upkeep(ledger, fields)?.do).toBe(goes ? "letLedgerGo" : undefined);
  });

  it("is one that was deleted: others stay as they are", () => {
    expect(upkeep(aLedger(), {}, false)).toBeUndefined();
  });

  it("gives way to the history, and the next look stays what it was", () => {
    const owner = aLockedCronJob({ successfulJobsHistoryLimit: 0 });
    expect(upkeep(aLedger(), { owner, jobs: [old] })).toMatchObject({ do: "prune", at: NOON + 5 });
    expect(upkeep(aLedger())).toMatchObject({ at: NOON + 5 });
  });
});

it("history is kept by the first in line", () => {
  const owner = aLockedCronJob({ successfulJobsHistoryLimit: 0 });
  expect(upkeep(aLedger(), { owner, jobs: [old], rank: 1 }, false)).toBeUndefined();
  expect(upkeep(aLedger(), { owner, jobs: [old] }, false)).toMatchObject({
    do: "prune",
    jobs: [old],
  });
});

describe("letting go", () => {
  const ledger = aLedger({ token: 3, lastTick: NOON, lastLaunched: NOON });
  const told = { token: 3, lastScheduleTime: at(NOON) };

  async function lettingGo(owner: ReturnType<typeof aLockedCronJob> | undefined, fails = false) {
    const did: string[] = [];
    const context = aContext({
      owners: { read: async () => owner },
      ledgers: {
        async letGo() {
          did.push("let go");
          if (fails) await conflict();
        },
        async create(_, made) {
          did.push("make");
          expect(made).toBe(ledger);
          return aRecord(made);
        },
        read: async () => undefined,
      },
    });
    const result = await letGo(context, "team/report", aRecord(ledger), ledger);
    return { did, next: result.next };
  }

  it.each<[situation: string, owner: ReturnType<typeof aLockedCronJob> | undefined, did: string[]]>(
    [
      [
        "waits for the status, from which the next ledger may have to be made",
        { ...aLockedCronJob(), status: { ...told, token: 2 } },
        [],
      ],
      [
        "waits for the last tick as well",
        { ...aLockedCronJob(), status: { token: 3, lastScheduleTime: at(NOON - 60_000) } },
        [],
      ],
      ["waits for a status at all", aLockedCronJob(), []],
      [
        "makes a ledger of the same contents at once",
        { ...aLockedCronJob(), status: told },
        ["let go", "make"],
      ],
      ["makes none for a LockedCronJob that is gone", undefined, ["let go"]],
      ["makes none for a namesake", aLockedCronJob({}, { uid: "owner-2" }), ["let go"]],
      [
        "makes none for a LockedCronJob that is going",
        aLockedCronJob({}, { deletionTimestamp: at(NOON) }),
        ["let go"],
      ],
    ],
  )("%s", async (_, owner, did) => {
    const result = await lettingGo(owner);
    expect(result).toEqual({ did, next: did.length === 0 ? "again" : "decide" });
  });

  it("makes none when somebody has written the ledger since", async () => {
    const result = await lettingGo({ ...aLockedCronJob(), status: told }, true);
    expect(result).toEqual({ did: ["let go"], next: "decide" });
  });
});
