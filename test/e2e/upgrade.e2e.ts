/**
 * Two versions of the product, up and down again, with their replicas side by side for as long as it takes to see that they
 * leave each other's words alone. Which two: releases.ts. Ticks are counted over all of it.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { keyOf } from "../../src/api/names.ts";
import type { LockedCronJob } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { rankOf } from "../../src/domain/election.ts";
import { openStream, type Stream } from "../chaos/stream.ts";
import { CHART } from "../chart/helm.ts";
import { until } from "../cluster/proc.ts";
import { otherRelease, type Release } from "./releases.ts";
import { isReady, openSite, PATIENCE_MS, SYSTEM, WORK, type Pod, type Site } from "./site.ts";
import { startTicking, type Ticking } from "./ticking.ts";

type Version = Pick<Release, "chart" | "tag">;
/** As the next version writes it; undefined in what comes from before. */
type Foretold = { readonly outlook?: string | number };

let other: Release;
let site: Site;
let ticking: Ticking;
let older: Version;
let newer: Version;
let statuses: Stream;
const told = new Map<string, LockedCronJob[]>();

beforeAll(async () => {
  const log = (line: string): void => console.error(`[e2e] ${line}`);
  other = await otherRelease(log);
  log(`the other version: ${other.what}`);
  site = await openSite({ images: [other.image] });
  const ours = { chart: CHART, tag: "e2e" };
  [older, newer] = other.isNewer ? [ours, other] : [other, ours];
}, 900_000);
afterAll(async () => {
  await statuses?.close();
  await ticking?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
});

const install = ({ chart, tag }: Version) => site.install({ image: { tag } }, chart);
const rollout = (word: "pause" | "resume") =>
  site.cluster.kubectl(["rollout", word, "deployment/lockedcron", "--namespace", SYSTEM]);

async function replicas({ tag }: Version): Promise<Pod[]> {
  return (await site.pods("operator")).filter(({ spec }) =>
    spec.containers.some(({ image }) => image.endsWith(`:${tag}`)),
  );
}

async function onlyReplicasOf(version: Version): Promise<void> {
  await site.operatorReady();
  await until(`all replicas are of ${version.tag}`, PATIENCE_MS, async () => {
    const [wanted, all] = [await replicas(version), await site.pods("operator")];
    return wanted.length === 3 && all.length === 3;
  });
}

const uids = (found: readonly Pod[]): string[] => found.map(({ metadata }) => metadata.uid ?? "");

/** A name whose ticks are led by one of these replicas. */
function ledBy(leaders: readonly string[], all: readonly string[], word: string): string {
  for (let i = 0; ; i++) {
    const key = keyOf(WORK, `${word}-${i}`);
    if (leaders.some((leader) => rankOf(leader, all, key) === 0)) return `${word}-${i}`;
  }
}

/** Of what the newer version alone writes, what was there once and then was not. */
function takenAway(name: string): string[] {
  const lost = (what: string, there: readonly boolean[]): string[] => {
    const first = there.indexOf(true);
    if (first < 0) return [`${name}: never had ${what}`];
    return there.slice(first).every(Boolean) ? [] : [`${name}: ${what} was taken away`];
  };
  const status = (told.get(name) ?? []).map((object) => object.status ?? {});
  const ledgers = ticking.witness.history(name).map(({ ledger }) => ledger as Foretold);
  const conditions = status.map((each) => each.conditions?.map<string>(({ type }) => type) ?? []);
  return [
    ...lost(
      "status.outlook",
      status.map((each) => (each as Foretold).outlook !== undefined),
    ),
    ...lost(
      "condition Outlook",
      conditions.map((types) => types.includes("Outlook")),
    ),
    ...lost(
      "the ledger's outlook",
      ledgers.map(({ outlook }) => outlook !== undefined),
    ),
  ];
}

test("replicas of two versions work side by side and leave each other's words alone", async () => {
  await install(older);
  ticking = await startTicking(site);
  statuses = await openStream(site.client, resources.lockedCronJobs, WORK, (_, object) => {
    const { name } = object.metadata;
    told.set(name, [...(told.get(name) ?? []), object]);
  });
  const { witness } = ticking;
  await witness.created("often", 1, PATIENCE_MS);
  await site.operatorReady();

  await install(newer);
  await until("the first replica of the newer version is there", PATIENCE_MS, async () => {
    return (await replicas(newer)).length > 0;
  });
  await rollout("pause");
  await until("replicas of both are ready, and nothing moves", PATIENCE_MS, async () => {
    const [before, after] = await Promise.all([replicas(older), replicas(newer)]);
    return before.length > 0 && after.length > 0 && [...before, ...after].every(isReady);
  });
  const [before, after] = [uids(await replicas(older)), uids(await replicas(newer))];
  const all = [...before, ...after];
  const [old, fresh] = [ledBy(before, all, "older"), ledBy(after, all, "newer")];
  const launchedBy = (name: string): string[] =>
    (witness.history(name).at(-1)?.ledger.decisions ?? [])
      .filter(({ decision }) => decision === "Launched")
      .map(({ replica }) => replica);
  for (const [name, leaders] of [
    [old, before],
    [fresh, after],
  ] as const) {
    await ticking.add(name, "@every 10s");
    // Long enough for every other replica to have had a look at the status.
    await witness.created(name, 4, PATIENCE_MS);
    await witness.until(
      `${name} is launched by one of its own version`,
      () => launchedBy(name).some((replica) => leaders.includes(replica)),
      PATIENCE_MS,
    );
  }
  if (other.isNewer) expect(takenAway(fresh)).toEqual([]);

  // In mid-tick the other version has to go on with what it finds.
  const [victim] = await replicas(newer);
  if (victim) await site.kill(victim);
  const { length } = witness.jobs(fresh);
  await witness.created(fresh, length + 2, PATIENCE_MS);
  expect(await ticking.faults()).toEqual([]);

  await rollout("resume");
  await onlyReplicasOf(newer);
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});

test("and the way back is the same", async () => {
  await install(older);
  await onlyReplicasOf(older);
  await ticking.goesOn();
  await ticking.goesOn();
  expect(await ticking.faults()).toEqual([]);
});
