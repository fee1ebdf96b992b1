/** CronJobs that become LockedCronJobs and the other way round, by docs/migrate.md, while ticks come and go. */
import type { Job } from "../../src/api/types.ts";
import { coreEvents, type KubeClient, type KubeObject } from "../../src/kube/index.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { cronJobs, lockedCronJobs, manifest, objectOf } from "../crd/fixture.ts";
import { atOnce, job } from "./case.ts";
import { openGuide, type Guide } from "./guide.ts";
import { jobs } from "./stage.ts";

export const MOVED = "moved";

type Kind = "CronJob" | "LockedCronJob";

interface Move {
  name: string;
  /** Where it runs at first; the other one is there, suspended, when it goes back. */
  from: Kind;
  /** Before the first tick, and after it. */
  before?: (step: Step) => Promise<void>;
  after: (step: Step) => Promise<void>;
  /** Who runs the second tick. */
  to: Kind;
}

type Step = (chapter: "Over" | "Back", block: number) => Promise<void>;

const over = async (step: Step): Promise<void> => {
  for (const block of [0, 1, 2]) await step("Over", block);
};
const back = async (step: Step): Promise<void> => {
  for (const block of [0, 1]) await step("Back", block);
};

export const MOVES: readonly Move[] = [
  { name: "over", from: "CronJob", after: over, to: "LockedCronJob" },
  { name: "back", from: "LockedCronJob", after: back, to: "CronJob" },
  {
    name: "over-and-back",
    from: "CronJob",
    after: async (step) => (await over(step), await back(step)),
    to: "CronJob",
  },
  {
    name: "over-around-a-tick",
    from: "CronJob",
    before: (step) => step("Over", 0),
    after: async (step) => (await step("Over", 1), await step("Over", 2)),
    to: "LockedCronJob",
  },
  {
    name: "over-through-a-tick",
    from: "CronJob",
    before: async (step) => (await step("Over", 0), await step("Over", 1)),
    after: (step) => step("Over", 2),
    to: "LockedCronJob",
  },
  {
    name: "back-through-a-tick",
    from: "LockedCronJob",
    before: (step) => step("Back", 0),
    after: (step) => step("Back", 1),
    to: "CronJob",
  },
];

/**
 * Makes the objects and moves each of them, also those that wait for the first tick; done when every object is where it
 * moves to.
 */
export async function moveAll(
  cluster: Cluster,
  client: KubeClient,
  { schedule, firstTick }: { schedule: string; firstTick: Promise<void> },
): Promise<void> {
  await cluster.kubectl(["create", "namespace", MOVED]);
  const guide = await openGuide(cluster, MOVED);
  for (const move of MOVES) {
    const types = move.from === "CronJob" ? [cronJobs] : [cronJobs, lockedCronJobs];
    for (const type of types) {
      const object = manifest((m) => {
        m.metadata.name = move.name;
        m.spec.schedule = schedule;
        m.spec.concurrencyPolicy = "Forbid";
        m.spec.suspend = type.kind !== move.from;
        job(m, atOnce);
      });
      await client.create(type, objectOf(type, object, MOVED));
    }
  }
  const go = async (move: Move): Promise<void> => {
    const step = stepOf(guide, move);
    await move.before?.(step);
    await firstTick;
    await move.after(step);
  };
  await Promise.all(MOVES.map(go));
}

function stepOf(guide: Guide, { name }: Move): Step {
  return (chapter, block) => guide.step(chapter, block, name);
}

/** Of each tick up to the second, the kinds that own a Job of it; waits for the second one. */
export async function ownersByTick(
  client: KubeClient,
  name: string,
  ticks: readonly [number, number],
): Promise<string[][]> {
  let found: string[][] = [];
  await until(`the second tick of ${name} has run`, 60_000, async () => {
    const { items } = await client.list(jobs, { namespace: MOVED });
    const ownersOf = (tick: number): string[] =>
      items.filter((one) => one.metadata.name === `${name}-${tick}`).map(ownerOf);
    found = ticks.map(ownersOf);
    return found.at(-1)?.length !== 0;
  }).catch(() => undefined);
  return found;
}

function ownerOf({ metadata }: Job): string {
  return metadata.ownerReferences?.map((owner) => owner.kind).join() ?? "";
}

/** Reasons of what was said of the object, of either kind, and which Jobs were said to be created, as often as it was said. */
export async function toldOf(
  client: KubeClient,
  name: string,
): Promise<{ reasons: string[]; created: string[] }> {
  const fieldSelector = `involvedObject.name=${name}`;
  const { items } = await client.list(coreEvents, { namespace: MOVED, fieldSelector });
  const events = items as unknown as Told[];
  // The native controller has its own trouble with a status that it writes while somebody suspends it.
  const isItsOwn = ({ reason, involvedObject: { kind } }: Told): boolean =>
    kind === "CronJob" && ["UnexpectedJob", "MissingJob"].includes(reason);
  const reasons = events.filter((event) => !isItsOwn(event)).map(({ reason }) => reason);
  return {
    reasons: [...new Set(reasons)].toSorted(),
    created: events
      .filter(({ reason }) => reason === "SuccessfulCreate")
      .flatMap(({ message, count = 1 }) => Array.from({ length: count }, () => message)),
  };
}

interface Told extends KubeObject {
  involvedObject: { kind: string };
  reason: string;
  message: string;
  count?: number;
}
