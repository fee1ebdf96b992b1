/** Native CronJob as the oracle: the same specs on the same cluster over the same two ticks. */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KubeClient } from "../../src/kube/index.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { clientOf, installCrd } from "../crd/fixture.ts";
import { startReplica, type Replica } from "../harness/replica.ts";
import { startRedis, type RedisServer } from "../redis/server.ts";
import { DONE, EVERY_S, type Case, type Which } from "./case.ts";
import { UNDER_WAY } from "./cases-under-way.ts";
import { BY_TIME } from "./cases.ts";
import { moveAll, MOVES, ownersByTick, toldOf } from "./moves.ts";
import { createPair, makeNamespaces, outcomeOf, see, SIDES } from "./pair.ts";
import type { Outcome, Side } from "./pair.ts";
import { refuseJobs } from "./refusals.ts";
import { isAbsent, jobsLeft, stageOf, type Stage } from "./stage.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CASES = [...BY_TIME, ...UNDER_WAY];

type Pair = Record<Side, Outcome>;

let cluster: ControlPlaneCluster;
let client: KubeClient;
let redis: RedisServer;
let replica: Replica;
/** The two ticks that are waited for, minutes since the epoch. */
let ticks: readonly [number, number];
/** Of these two, and of no other within an hour. */
let schedule: string;
/** The top of an hour of six hours ago. */
const past = new Date(Math.floor((Date.now() - 6 * HOUR) / HOUR) * HOUR);
/** When each pair was created, ms. */
const created = new Map<string, number>();
/** What became of each case on either side, as it was when all had come to their end, with two ticks. */
const ends = new Map<string, Pair>();

beforeAll(async () => {
  cluster = await startCluster({
    mode: "control-plane",
    log: console.error,
    // As it is by default, the oracle would take ten seconds for a tick of so many.
    flags: { controllerManager: { "kube-api-qps": 500, "kube-api-burst": 1_000 } },
  });
  client = clientOf(cluster.adminKubeconfig);
  await installCrd(cluster);
  await cluster.kubectl(["create", "namespace", "lockedcron-system"]);
  await makeNamespaces(client);
  await refuseJobs(client);
  redis = await startRedis();
  // All are there some time before the first tick, or one side might see it and the other not. No other tick comes near.
  const first = Math.ceil((Date.now() + 40_000) / MINUTE);
  ticks = [first, first + 1];
  schedule = `${ticks.map((tick) => tick % 60).join()} * * * *`;
  // A few at a time: each request has only so long to be answered.
  const left = [...CASES];
  while (left.length > 0) await Promise.all(left.splice(0, 6).map(create));
  // Not before: what the status tells of the past is read when a ledger is made.
  replica = await startReplica({
    name: "replica-a",
    kubeconfig: cluster.kubeconfigPath,
    redis: [redis.url],
  });
  await replica.ready(MINUTE);
  const moved = moveAll(cluster, client, { schedule, firstTick: begun(1) });
  // Awaited below; until then its failure is not to end the process.
  moved.catch(() => undefined);
  await act("early");
  expect(Date.now(), "all is there before the first tick").toBeLessThan(ticks[0] * MINUTE);
  await begun(1);
  await act("between");
  await begun(2);
  await act("late");
  // Each side is given the time that it needs to come to its end. What has not come to it is shown by its test.
  await until("all have come to the same end", 90_000, async () => {
    await look();
    return CASES.every(isAsWanted);
  }).catch(() => undefined);
  await moved;
}, 6 * MINUTE);

afterAll(async () => {
  await replica?.stop();
  await client?.[Symbol.asyncDispose]();
  await redis?.stop();
  await cluster?.stop();
});

describe("a LockedCronJob does what a CronJob does", () => {
  test.each(CASES)("$name", (one) => {
    const { native, ours } = ends.get(one.name) as Pair;
    expect(namesIn(ours)).toEqual(namesOf(one, one.jobs));
    expect(reasonsOf(ours, one)).toEqual(one.reasons);
    if (!isOracle(native, one)) return;
    if (one.differs?.native === undefined) {
      expect(without(ours, one)).toEqual(without(native, one));
    } else {
      expect(namesIn(native)).toEqual(namesOf(one, one.differs.native.jobs));
      expect(reasonsOf(native)).toEqual(one.differs.native.reasons);
    }
  });
});

test("the native controller is an oracle for most of them", () => {
  const judged = CASES.filter((one) => isOracle((ends.get(one.name) as Pair).native, one));
  expect(judged.length).toBeGreaterThan(CASES.length / 2);
});

describe.concurrent("a LockedCronJob goes as a CronJob goes", () => {
  test.each(CASES.filter((one) => one.end !== undefined))("$name", async (one) => {
    const stage = stageFor(one);
    await one.end?.(stage);
    const want = namesOf(one, one.left ?? []).map((name) => ({ name, owners: 0 }));
    for (const side of SIDES) {
      await until(`${side}/${one.name} is gone`, MINUTE, () =>
        stage.object(side).then(
          () => false,
          (error: unknown) => !isAbsent(error),
        ),
      );
      let left: unknown;
      await until(`the Jobs of ${side}/${one.name} are as wanted`, MINUTE, async () => {
        left = await jobsLeft(client, side, one.name);
        return isDeepStrictEqual(left, want);
      }).catch(() => undefined);
      expect(left).toEqual(want);
    }
  });
});

describe("docs/migrate.md", () => {
  test.each(MOVES)("$name: each tick has run once", async ({ name, from, before, to }) => {
    const [first, second] = await ownersByTick(client, name, ticks);
    // A move that begins before the first tick may be through with it, or not.
    expect(first).toEqual(before === undefined ? [from] : [expect.any(String)]);
    expect(second).toEqual([to]);
    const { reasons, created } = await toldOf(client, name);
    // Nobody has tried a tick again, which is what these would tell.
    expect(reasons.filter((reason) => !DONE.includes(reason))).toEqual([]);
    for (const tick of ticks) {
      const said = created.filter((message) => message.endsWith(`-${tick}`));
      expect(said).toHaveLength(1);
    }
  });
});

const stageFor = ({ name }: Case): Stage => stageOf(client, name, { ticks, past });

async function create(one: Case): Promise<void> {
  created.set(one.name, await createPair(client, one, { schedule, past }));
}

async function act(when: "early" | "between" | "late"): Promise<void> {
  await Promise.all(CASES.map(async (one) => one[when]?.(stageFor(one))));
}

async function begun(tick: 1 | 2): Promise<void> {
  await until(`both sides have begun with tick ${tick}`, 2 * MINUTE, async () => {
    await look();
    const pair = ends.get("allow-done");
    return SIDES.every((side) =>
      pair?.[side].jobs.some((job) => job.name === `allow-done-${ticks[tick - 1]}`),
    );
  });
}

async function look(): Promise<void> {
  const [native, ours] = [await see(client, "native"), await see(client, "ours")];
  for (const one of CASES) {
    const compared = [...ticks, past.getTime() / MINUTE, past.getTime() / MINUTE + 2];
    const isCompared = (text: string): boolean =>
      !/-\d{8}\b/.test(text) || compared.some((tick) => text.includes(`-${tick}`));
    ends.set(one.name, {
      native: outcomeOf(native, one.name, isCompared),
      ours: outcomeOf(ours, one.name, isCompared),
    });
  }
}

function isAsWanted(one: Case): boolean {
  const pair = ends.get(one.name);
  if (pair === undefined) return false;
  const { native, ours } = pair;
  const is = (outcome: Outcome, want: Pick<Case, "jobs" | "reasons">): boolean =>
    isDeepStrictEqual(namesIn(outcome), namesOf(one, want.jobs)) &&
    isDeepStrictEqual(reasonsOf(outcome, one), want.reasons);
  if (!is(ours, one)) return false;
  if (!isOracle(native, one)) return true;
  return one.differs?.native === undefined
    ? isDeepStrictEqual(without(ours, one), without(native, one))
    : is(native, one.differs.native);
}

function namesOf({ name }: Case, jobs: readonly Which[]): string[] {
  const minute = (ms: number): number => Math.floor(ms / MINUTE);
  const parts: Record<string, number> = {
    first: ticks[0],
    second: ticks[1],
    past: minute(past.getTime()),
    "past+2": minute(past.getTime()) + 2,
    every: minute((created.get(name) ?? 0) + EVERY_S * 1_000),
  };
  return jobs.map((which) => `${name}-${parts[which] ?? which}`);
}

function namesIn({ jobs }: Outcome): string[] {
  return jobs.map((job) => job.name);
}

function reasonsOf({ events }: Outcome, { perhaps }: Pick<Case, "perhaps"> = {}): string[] {
  const reasons = new Set(events.map((event) => event.split(" ")[1] ?? ""));
  return [...reasons].filter((reason) => reason !== perhaps).toSorted();
}

/** By which the native controller tells of trouble of its own. */
const TROUBLE = ["FailedCreate", "FailedDelete", "FailedGet", "MissingJob", "UnexpectedJob"];

/**
 * The native controller says so itself when it acted on what had changed meanwhile (it deleted a Job a second time, or lost sight
 * of one, as the write of its status failed or came too late): no oracle any more.
 */
function isOracle(native: Outcome, { reasons, differs = {} }: Case): boolean {
  const hadTrouble = native.events.some((event) =>
    TROUBLE.some(
      (reason) =>
        event.includes(` ${reason} `) &&
        !reasons.includes(reason) &&
        differs.events?.test(event) !== true,
    ),
  );
  return !hadTrouble && differs.late !== true;
}

function without(outcome: Outcome, { differs = {} }: Case): object {
  const isLetGo = (event: string): boolean =>
    differs.events?.test(event) === true ||
    (differs.second === true && event.includes(`-${ticks[1]}`));
  const events = outcome.events.filter((event) => !isLetGo(event));
  const { active, ...status } = outcome.status;
  return { ...outcome, events, status: differs.active === true ? status : { ...status, active } };
}
