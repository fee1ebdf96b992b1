import { describe, expect, it } from "vitest";
import { launch, send, takeOver } from "../../src/controller/launch.ts";
import type { Context } from "../../src/controller/context.ts";
import { Reason } from "../../src/api/reasons.ts";
import { parseSchedule, type Schedule } from "../../src/domain/schedule/index.ts";
import { aContext, aRecord } from "../builders/context.ts";
import { aJobView, aLedger, aLockedCronJob, aRun, NOON } from "../builders/objects.ts";

const owner = aLockedCronJob();
const ledger = aLedger({ lastTick: NOON, runs: [aRun()] });
const record = aRecord(ledger);

function hourly(): Schedule {
  const parsed = parseSchedule("0 * * * *", {});
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.schedule;
}

describe("a process that cannot confirm its membership Lease", () => {
  /** Every call to the world that is not given here fails the test. */
  const c = (): Context =>
    aContext({
      members: { confirm: () => Promise.resolve(false) },
      jobs: { read: () => Promise.resolve(undefined) },
    });
  const tick = { tick: NOON, missed: 0, reason: Reason.Due, message: "due", rank: 0 };

  it("is not named in a ledger: by that Lease its death is to be proven", async () => {
    const result = await launch(c(), owner, hourly(), aRecord(aLedger()), aLedger(), tick);
    expect(result).toMatchObject({ next: "again", at: NOON + 2_000 });
  });

  it("takes nothing over", async () => {
    const result = await takeOver(c(), owner, hourly(), record, ledger, aRun(), 0);
    expect(result).toMatchObject({ next: "again" });
  });

  it("sends nothing, and its attempt stays unsent", async () => {
    const result = await send(c(), owner, hourly(), record, aRun(), 1, 0);
    expect(result).toMatchObject({ next: "again" });
  });
});

it("a Job that cannot be built leaves its attempt unsent", async () => {
  const broken = aLockedCronJob({
    jobTemplate: { spec: { template: { spec: { restartPolicy: "Never" } } } },
  } as never);
  const context = aContext({});
  await expect(send(context, broken, hourly(), record, aRun(), 1, 0)).rejects.toThrow(TypeError);
});

it("an attempt counts as sent before its POST leaves, and as answered after", async () => {
  const seen: string[] = [];
  const context = aContext({
    attempts: {
      sending: (id, n) => void seen.push(`sending ${id} ${n}`),
      answered: () => void seen.push("answered"),
    },
    jobs: {
      create: () => {
        seen.push("POST");
        return Promise.resolve(aJobView());
      },
    },
  });
  const result = await send(context, owner, hourly(), record, aRun(), 1, 0);
  expect(result).toMatchObject({ next: "followUp" });
  expect(seen).toEqual([`sending ${aRun().runId} 1`, "POST", "answered"]);
});
