/**
 * `make soak-locks`: runs that share mutexes, on real pods of two nodes, three replicas and five Redis nodes, under random
 * faults, until SOAK_RUNS (200) have started. Several groups of LockedCronJobs, a mutex each, go on side by side. At the
 * end: no two of a group ever ran at the same time, tokens have grown, each run has come to its end, and no lock was left
 * for longer than a lease after the pods of its run were gone.
 *
 * SOAK_SEED repeats the choice of faults (not their timing), SOAK_NODE_AWAY_S and SOAK_PAUSE_S shorten the long ones.
 */
import { appendFileSync, chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { resources } from "../../src/controller/caches.ts";
import { mulberry32 } from "../builders/random.ts";
import { until } from "../cluster/proc.ts";
import type { Replica } from "../harness/replica.ts";
import { manifest, NAMESPACE, openScene } from "./scene.ts";
import { createFaults } from "./soak-faults.ts";
import { watchLocksLeft } from "./soak-locks-left.ts";
import { overlaps, readLines, tokensThatDoNotGrow } from "./witness.ts";

const RUNS = Number(process.env["SOAK_RUNS"] ?? 200);
const SEED = Number(process.env["SOAK_SEED"] ?? Date.now() % 100_000);
const NODE_AWAY_MS = Number(process.env["SOAK_NODE_AWAY_S"] ?? 120) * 1000;
const PAUSE_MS = Number(process.env["SOAK_PAUSE_S"] ?? 45) * 1000;
const LEASE_MS = 10_000;
/** For everything to come to its end once the faults have stopped. */
const REST_MS = 900_000;
const GROUPS = ["a", "b", "c", "d"];
const NAMES = GROUPS.flatMap((group) => [`${group}-1`, `${group}-2`, `${group}-3`]);
const groupOf = (name: string): string => name.slice(0, 1);

const random = mulberry32(SEED);
const say = (text: string): void =>
  console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);

const dir = mkdtempSync(join(tmpdir(), "witness-"));
chmodSync(dir, 0o755);
const fileOf = (group: string): string => join(dir, group);
for (const group of GROUPS) {
  writeFileSync(fileOf(group), "");
  chmodSync(fileOf(group), 0o666);
}

/** Alive for two to four seconds, and says so all the time. TERM ends it at once, without a word. */
const script = (group: string): string => `
  me="$LOCKEDCRON_RUN_ID $HOSTNAME $LOCKEDCRON_TOKEN"
  trap 'exit 0' TERM
  echo "start $me" >> /witness/${group}
  i=0
  while test $i -lt $((8 + LOCKEDCRON_TOKEN % 8)); do
    echo "alive $me" >> /witness/${group}
    usleep 250000
    i=$((i + 1))
  done
  echo "end $me" >> /witness/${group}`;

const scene = await openScene({
  replicas: 3,
  redisNodes: 5,
  cuttable: true,
  onLine: (replica, line) =>
    appendFileSync(join(dir, `${replica}.log`), `${JSON.stringify(line)}\n`),
});
const faults = createFaults({
  scene,
  random,
  pauseMs: PAUSE_MS,
  nodeAwayMs: NODE_AWAY_MS,
  names: NAMES,
  linesOf: (name) => readLines(fileOf(groupOf(name))).length,
});
const left = watchLocksLeft({ scene, names: NAMES, leaseMs: LEASE_MS, ...faults });
const wrong: string[] = [];
const begun = performance.now();
say(`seed ${SEED}, ${RUNS} runs, witness ${dir}`);
for (const name of NAMES) {
  const object = manifest(name, {
    script: script(groupOf(name)),
    job: { backoffLimit: 0 },
    pod: { volumes: [{ name: "witness", hostPath: { path: dir } }] },
    lock: { mutexes: [groupOf(name)], waitSeconds: 3_600, leaseSeconds: LEASE_MS / 1000 },
  });
  const [container] = object.spec.jobTemplate.spec.template.spec.containers;
  if (container !== undefined)
    container["volumeMounts"] = [{ name: "witness", mountPath: "/witness" }];
  await scene.client.create(resources.lockedCronJobs, object, { timeoutMs: 60_000 });
}

const started = (): number =>
  new Set(GROUPS.flatMap((group) => readLines(fileOf(group)).map(({ run }) => run))).size;

/** None ends but those that are killed. */
const watched = new Set<Replica>();
function watchReplicas(): void {
  for (const replica of scene.replicas) {
    if (watched.has(replica)) continue;
    watched.add(replica);
    void replica.exited.then(() => {
      if (scene.replicas.includes(replica)) wrong.push(`${replica.name} ended: ${replica.text()}`);
    });
  }
}

const busy = new Set<Promise<void>>();
while (started() < RUNS && wrong.length === 0) {
  await sleep(2_000 + Math.floor(random() * 6_000));
  watchReplicas();
  const fault = faults.next();
  if (fault === undefined) continue;
  say(`${started()} runs; ${fault.what}`);
  const over: Promise<void> = fault.over
    .catch((error: unknown) => {
      wrong.push(`${fault.what} failed: ${error instanceof Error ? error.message : "?"}`);
    })
    .finally(() => busy.delete(over));
  busy.add(over);
}
await Promise.all(busy);
const minutes = ((performance.now() - begun) / 60_000).toFixed(0);
say("faults are over");
for (const name of NAMES) {
  const id = { namespace: NAMESPACE, name };
  const patch = { type: "merge" as const, body: { spec: { suspend: true } } };
  await until(`${name} is suspended`, 120_000, () =>
    scene.client.patch(resources.lockedCronJobs, id, patch).then(
      () => true,
      () => undefined,
    ),
  );
}
const all = () => NAMES.flatMap((name) => scene.runs(name));
const atRest = await until("every run is over", REST_MS, async () =>
  all().every(({ overAt }) => overAt !== undefined),
).catch(() => false);
if (!atRest) {
  const open = all().filter(({ overAt }) => overAt === undefined);
  wrong.push(`not over: ${open.map(({ run }) => run.runId).join(", ")}`);
}
await sleep(LEASE_MS);
for (const server of scene.redis) {
  const keys = (await server.command("KEYS", `*:${NAMESPACE}/*`)) as string[];
  wrong.push(...keys.map((key) => `left in Redis: ${key}`));
}
for (const [mutex, holder] of scene.fences) {
  if (holder !== undefined) wrong.push(`the fence of mutex ${mutex} names ${holder}`);
}
await left.stop();
wrong.push(...left.wrong);

const gaps = scene.gaps();
for (const { name, run, begunAt, overAt = 0 } of all()) {
  for (const { job, goneAt, object } of scene.pods(name)) {
    if (job !== run.jobName) continue;
    const seenWhole = !gaps.some((gap) => gap >= begunAt && gap <= (goneAt ?? Infinity));
    if (goneAt === undefined) wrong.push(`${object.metadata.name} is not gone`);
    else if (seenWhole && overAt < goneAt)
      wrong.push(`${run.jobName} was over before ${object.metadata.name} was gone`);
  }
}
const lines = GROUPS.map((group) => readLines(fileOf(group)));
for (const of of lines) wrong.push(...overlaps(of, faults.forced), ...tokensThatDoNotGrow(of));
const delays = left.delays.toSorted((a, b) => a - b);
const seconds = (share: number): string =>
  ((delays[Math.ceil(delays.length * share) - 1] ?? 0) / 1000).toFixed(1);
const ended = new Set(lines.flat().flatMap(({ what, run }) => (what === "end" ? [run] : [])));
const ends = [...wrong];
await scene[Symbol.asyncDispose]();
say(`seed ${SEED}: ${started()} runs in ${minutes} min, ${ended.size} wrote their last line`);
for (const [what, count] of faults.counts) say(`  ${count} × ${what}`);
say(
  `locks were gone ${seconds(0.5)} s (median), ${seconds(0.99)} s (p99), ${seconds(1)} s (last) after the pods`,
);
for (const text of ends) console.error(`WRONG ${text}`);
say(
  ends.length === 0
    ? "no overlap, tokens grow, every run has its end, no lock was left behind"
    : `${ends.length} violations`,
);
// Not exitCode: Node 24 may hang in closing the sockets that were reset in mid-air.
process.exit(ends.length === 0 ? 0 : 1);
