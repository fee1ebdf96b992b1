/** A thousand random outages over random schedules, by each policy: no tick is lost, none runs twice. */
import { describe, expect, it } from "vitest";
import type { LockedCronJobSpec } from "../../../src/api/types.ts";
import { ticksFrom } from "../../../src/domain/decide/index.ts";
import { parseSchedule, type Schedule } from "../../../src/domain/schedule/index.ts";
import { aLockedCronJob, at, HOUR, MINUTE } from "../../builders/objects.ts";
import { mulberry32 } from "../../builders/random.ts";
import { createOutageWorld, type Ran } from "./world.ts";

const OUTAGES = 1_000;
const OUTAGES_EACH = 20;
const DAY = 24 * HOUR;
/** A week before clocks go back in Europe: the month has an hour that comes twice. */
const BEGIN = Date.UTC(2026, 9, 18);
const SCHEDULES: readonly [string, string?][] = [
  ["*/15 9-17 * * *"],
  ["7 3 * * 1-5"],
  ["0,10,11 */2 * * *"],
  ["30 2 * * *", "Europe/Berlin"],
  ["*/20 1-3 * * *", "America/New_York"],
  ["0 0 1,15 * *"],
  ["@every 37m"],
  ["5 4 * * sun", "Pacific/Chatham"],
];

interface Month {
  runs: readonly Ran[];
  schedule: Schedule;
  missed: number;
  /** The last decided tick. */
  to: number;
  up: readonly [number, number][];
  end: number;
}

/** A month in which the operator is away time and again, for minutes or for days. */
async function month(seed: number, spec: Partial<LockedCronJobSpec>): Promise<Month> {
  const random = mulberry32((seed + 1) * 0x9e3779b1);
  const [expression, timeZone] = SCHEDULES[seed % SCHEDULES.length]!;
  const parsed = parseSchedule(expression, { timeZone });
  if (!parsed.ok) throw new Error(parsed.message);
  const zone = timeZone === undefined ? {} : { timeZone };
  const owner = aLockedCronJob(
    { schedule: expression, ...zone, ...spec },
    { creationTimestamp: at(BEGIN) },
  );
  const up: [number, number][] = [];
  let when = BEGIN;
  for (let i = 0; i < OUTAGES_EACH; i++) {
    const from = when;
    when += MINUTE + random() ** 3 * 3 * DAY;
    up.push([from, when]);
    when += 1_000 + random() ** 3 * 3 * DAY;
  }
  const end = when + 2 * DAY;
  up.push([when, end]);
  const durations = Array.from({ length: 97 }, () => 5_000 + random() ** 9 * 5 * HOUR);
  const world = createOutageWorld({
    owner,
    lasts: (n) => durations[n % durations.length]!,
    begin: BEGIN,
  });
  await world.live(up, end);
  const ledger = world.ledger();
  const { schedule } = parsed;
  return { runs: world.runs, schedule, missed: ledger.missed, to: ticksFrom(ledger), up, end };
}

function overlaps(runs: readonly Ran[]): string[] {
  return runs
    .slice(1)
    .flatMap((run, i) =>
      run.from < runs[i]!.to ? [`${at(run.tick)} ran beside ${at(runs[i]!.tick)}`] : [],
    );
}

function disorder(runs: readonly Ran[]): string[] {
  return runs.slice(1).flatMap((run, i) => (run.tick <= runs[i]!.tick ? [at(run.tick)] : []));
}

type Check = (m: Month) => void;
const noOverlap: Check = ({ runs }) => expect(overlaps(runs)).toEqual([]);
const noneMissed: Check = ({ missed }) => expect(missed).toBe(0);
const onTime: Check = ({ runs }) =>
  expect(runs.filter((r) => r.from - r.tick > MINUTE)).toEqual([]);
/** When the operator comes back, the newest tick that was missed runs. */
const latestRuns: Check = ({ runs, schedule, up }) => {
  for (const [i, [from]] of up.entries()) {
    const left = up[i - 1]?.[1];
    const latest = schedule.lastFire(BEGIN, from);
    if (latest !== null && left !== undefined && latest > left)
      expect(runs.map((r) => r.tick)).toContain(latest);
  }
};

describe(`${OUTAGES} outages`, () => {
  it.each<[name: string, spec: Partial<LockedCronJobSpec>, ...checks: Check[]]>([
    ["Allow, Latest", { concurrencyPolicy: "Allow" }, latestRuns],
    [
      "Allow, All",
      { concurrencyPolicy: "Allow", catchUp: { policy: "All", limit: 1_000 } },
      noneMissed,
    ],
    ["Allow, None", { concurrencyPolicy: "Allow", catchUp: { policy: "None" } }, onTime],
    ["Forbid, Latest", {}, noOverlap],
    ["Forbid, All", { catchUp: { policy: "All", limit: 1_000 } }, noOverlap, noneMissed],
    ["Forbid, None", { catchUp: { policy: "None" } }, noOverlap, onTime],
    ["Forbid with a deadline", { startingDeadlineSeconds: 600 }, noOverlap],
    ["Skip", { concurrencyPolicy: "Skip" }, noOverlap],
    ["Replace", { concurrencyPolicy: "Replace" }, noOverlap, latestRuns],
    ["Queue", { concurrencyPolicy: "Queue", queueLimit: 1_000 }, noOverlap, noneMissed],
  ])("%s", async (_, spec, ...checks) => {
    let ran = 0;
    for (let seed = 0; seed < OUTAGES / OUTAGES_EACH; seed++) {
      const m = await month(seed, spec);
      ran += m.runs.length;
      expect(new Set(m.runs.map((r) => r.tick)).size, `seed ${seed}: ticks are unique`).toBe(
        m.runs.length,
      );
      expect(disorder(m.runs), `seed ${seed}: in order`).toEqual([]);
      expect(m.runs.length + m.missed, `seed ${seed}: every tick is accounted for`).toBe(
        m.schedule.countFires(BEGIN, m.to),
      );
      for (const check of checks) check(m);
    }
    expect(ran).toBeGreaterThan(OUTAGES);
  });
});
