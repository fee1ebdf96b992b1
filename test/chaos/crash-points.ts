/** A replica is killed after each step of the protocol, or an answer is lost: the tick runs once, whoever goes on. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CallFault, StepFault } from "../harness/faults.ts";
import type { Replica } from "../harness/replica.ts";
import { nameFor, useWorld, type Lab } from "./world.ts";

/** So long a dead process's requests count as under way, instead of two minutes. */
const requestBoundMs = 500;

const STEPS = [
  "elected",
  "claimed",
  "created",
  "started",
  "finalizerDropped",
  "statusWritten",
] as const satisfies StepFault["after"][];
const CALLS = ["create jobs", "update leases", "patch jobs"] as const;
const LOSSES = ["loseAnswer", "loseRequest"] as const satisfies CallFault["do"][];
const LOST = CALLS.flatMap((call) => LOSSES.map((loss) => ({ call, loss })));

const TITLES = [
  ...STEPS,
  ...LOST.flatMap(({ call, loss }) => [`${call} ${loss}`, `killed at ${call} ${loss}`]),
];
const victimOf = (title: string): string =>
  `victim-${title.replaceAll(/[^a-z]+/gi, "-").toLowerCase()}`;

/** Where the killed process leaves an attempt of which only its successor proves that it cannot arrive; or may do so. */
const NEEDS_SUCCESSOR = [
  "claimed",
  "create jobs loseRequest",
  "update leases loseAnswer",
  // The status is written beside launches, so one may be at any point.
  "statusWritten",
];

const world = useWorld();
let system: Lab;
const labs = new Map<string, Lab>();
/** Sees every lab and has no fault of its own. */
let bystander: Replica;

beforeAll(async () => {
  system = await world().lab();
  await Promise.all(
    TITLES.map(async (title) => labs.set(title, await world().lab(system.namespace))),
  );
  const watch = [...labs.values()].map(({ namespace }) => namespace);
  bystander = await system.replica("bystander", { watch, faults: { requestBoundMs } });
});
afterAll(async () => {
  expect(bystander.alive()).toBe(true);
  await Promise.all([...labs.values(), system].map((lab) => lab[Symbol.asyncDispose]()));
});

/** A replica with faults, and a LockedCronJob for which it goes first. */
async function stage(title: string, faults: { steps?: StepFault[]; calls?: CallFault[] }) {
  const lab = labs.get(title)!;
  const replica = victimOf(title);
  // The victims of the other tests are known as replicas here too, and must not be waited for.
  const others = TITLES.map(victimOf).filter((other) => other !== replica);
  const name = nameFor(lab.namespace, "job", [replica, "bystander"], others);
  const start = (mine: typeof faults) =>
    lab.replica(replica, { faults: { ...mine, requestBoundMs } });
  const victim = await start(faults);
  await lab.create(name);
  return { lab, name, victim, successor: () => start({}) };
}

/** The others launch a tick that nobody has launched yet; at least the third. */
async function oneMore(lab: Lab, name: string): Promise<void> {
  await lab.seen.created(name, Math.max(3, lab.seen.jobs(name).length + 1));
}

describe.concurrent("a replica is killed after", () => {
  it.each(STEPS)("%s: another one goes on", async (after) => {
    const { lab, name, victim, successor } = await stage(after, {
      steps: [{ after, do: "kill", nth: after === "statusWritten" ? 2 : 1 }],
    });
    expect(await victim.exited).toMatchObject({ code: 137 });
    await oneMore(lab, name);
    if (NEEDS_SUCCESSOR.includes(after)) await successor();
    expect(await lab.violationsAtEnd(name)).toEqual([]);
  });

  it.each(LOST)("$call, $loss: another one finds out what became of it", async ({ call, loss }) => {
    const fault: CallFault = { call, do: loss, name: "job", thenKill: true };
    // The first update of a ledger is the claim.
    const { lab, name, victim, successor } = await stage(`killed at ${call} ${loss}`, {
      calls: [fault],
    });
    expect(await victim.exited).toMatchObject({ code: 137 });
    await oneMore(lab, name);
    if (NEEDS_SUCCESSOR.includes(`${call} ${loss}`)) await successor();
    expect(await lab.violationsAtEnd(name)).toEqual([]);
  });
});

describe.concurrent("a replica lives on after", () => {
  it.each(LOST)("$call, $loss: it finds out what became of it", async ({ call, loss }) => {
    const { lab, name, victim } = await stage(`${call} ${loss}`, {
      calls: [{ call, do: loss, name: "job" }],
    });
    await victim.line("loses it", ({ event }) => event === "Fault");
    await lab.seen.created(name, 3);
    expect(await lab.violationsAtEnd(name)).toEqual([]);
    expect(await victim.stop()).toBe(0);
  });
});
