/**
 * `make soak-locks`: runs that share a mutex, on real pods of two nodes, under random faults, until SOAK_RUNS (200) have
 * started. At the end: no two ever ran at the same time, each run has come to its end, and no lock is left.
 *
 * SOAK_SEED repeats the choice of faults (not their timing), SOAK_NODE_AWAY_S and SOAK_PAUSE_S shorten the long ones.
 */
import { mkdtempSync, writeFileSync, chmodSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { resources } from "../../src/controller/caches.ts";
import { until } from "../cluster/proc.ts";
import { manifest, NAMESPACE, openScene, type Scene } from "./scene.ts";
import { overlaps, readLines, type Forced } from "./witness.ts";

const RUNS = Number(process.env["SOAK_RUNS"] ?? 200);
const SEED = Number(process.env["SOAK_SEED"] ?? Date.now() % 100_000);
const NODE_AWAY_MS = Number(process.env["SOAK_NODE_AWAY_S"] ?? 120) * 1000;
const PAUSE_MS = Number(process.env["SOAK_PAUSE_S"] ?? 45) * 1000;
const LEASE_MS = 10_000;
/** For everything to come to its end once the faults have stopped. */
const REST_MS = 900_000;
const NAMES = ["a", "b", "c", "d"];

let state = SEED >>> 0;
/** A small generator whose whole state is its seed. Source: T. Ettinger, mulberry32 (public domain). */
function random(): number {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
const below = (n: number): number => Math.floor(random() * n);
const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;

const say = (text: string): void =>
  console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);

const dir = mkdtempSync(join(tmpdir(), "witness-"));
chmodSync(dir, 0o777);
const file = join(dir, "lines");
writeFileSync(file, "", { mode: 0o666 });
chmodSync(file, 0o666);

/** Alive for two to four seconds, and says so all the time. TERM ends it at once, without a word. */
const SCRIPT = `
  me="$LOCKEDCRON_RUN_ID $HOSTNAME"
  trap 'exit 0' TERM
  echo "start $me" >> /witness/lines
  i=0
  while test $i -lt $((8 + LOCKEDCRON_TOKEN % 8)); do
    echo "alive $me" >> /witness/lines
    usleep 250000
    i=$((i + 1))
  done
  echo "end $me" >> /witness/lines`;

type Fault = (scene: Scene) => Promise<unknown>;
const forced: Forced[] = [];
const counts = new Map<string, number>();

/** Each undoes itself; several may be at work at the same time. */
const FAULTS: Record<string, Fault> = {
  async "replica killed"({ replicas, start }) {
    const victim = pick(replicas.filter((r) => r.alive()));
    await victim.kill();
    replicas.splice(replicas.indexOf(victim), 1);
    replicas.push(await start(victim.name));
  },
  async "replica paused"({ replicas }) {
    const victim = pick(replicas.filter((r) => r.alive()));
    victim.pause();
    await sleep(PAUSE_MS);
    victim.resume();
  },
  async "Redis killed"({ redis }) {
    const victims = redis.filter(() => random() < 0.5);
    await Promise.all(victims.map((server) => server.kill()));
    await sleep(2_000 + below(8_000));
    await Promise.all(victims.map((server) => server.start()));
  },
  async "Redis all killed"({ redis }) {
    await Promise.all(redis.map((server) => server.kill()));
    await sleep(5_000 + below(15_000));
    await Promise.all(redis.map((server) => server.start()));
  },
  "Redis wiped": ({ redis }) =>
    Promise.all(redis.filter(() => random() < 0.6).map((server) => server.wipe())),
  async "Redis paused"({ redis }) {
    const victims = redis.filter(() => random() < 0.5);
    for (const server of victims) server.pause();
    await sleep(2_000 + below(10_000));
    for (const server of victims) server.resume();
  },
  "API server restarted": ({ cluster }) =>
    cluster.apiServer.restart({ how: pick(["SIGTERM", "SIGKILL"] as const) }),
  async "node cut off"({ cluster }) {
    const node = pick(cluster.nodes);
    await node.cutOff();
    await sleep(NODE_AWAY_MS);
    await node.heal();
  },
  async "pod force-deleted"(scene) {
    const alive = NAMES.flatMap((name) => scene.pods(name)).filter(
      (pod) => pod.ranAt !== undefined && pod.goneAt === undefined,
    );
    if (alive.length === 0) return;
    const { name } = pick(alive).object.metadata;
    // ORDER: before it is deleted. What it writes until its kubelet has heard of it is on whoever forces.
    forced.push({ pod: name, at: readLines(file).length });
    const force = ["--force", "--grace-period=0", "--ignore-not-found"];
    await scene.cluster.kubectl(["-n", NAMESPACE, "delete", "pod", name, ...force]);
  },
};
/** Two that would undo each other's undoing do not go together. */
const GROUPS: Record<string, string> = {
  "Redis killed": "r",
  "Redis all killed": "r",
  "Redis wiped": "r",
  "Redis paused": "r",
  "replica killed": "p",
  "replica paused": "p",
  "node cut off": "n",
};

const scene = await openScene(3, 5);
say(`seed ${SEED}, ${RUNS} runs, witness ${file}`);
for (const name of NAMES) {
  const object = manifest(name, {
    script: SCRIPT,
    job: { backoffLimit: 0 },
    pod: { volumes: [{ name: "witness", hostPath: { path: dir } }] },
    lock: { mutexes: ["m"], waitSeconds: 3_600, leaseSeconds: LEASE_MS / 1000 },
  });
  const [container] = object.spec.jobTemplate.spec.template.spec.containers;
  if (container !== undefined)
    container["volumeMounts"] = [{ name: "witness", mountPath: "/witness" }];
  await scene.client.create(resources.lockedCronJobs, object, { timeoutMs: 60_000 });
}

const started = (): number =>
  new Set(
    readLines(file)
      .filter(({ what }) => what === "start")
      .map(({ run }) => run),
  ).size;
const busy = new Map<string, Promise<unknown>>();
const broken: string[] = [];
while (started() < RUNS && broken.length === 0) {
  await sleep(2_000 + below(6_000));
  const name = pick(Object.keys(FAULTS));
  const group = GROUPS[name] ?? name;
  if (busy.has(group)) continue;
  counts.set(name, (counts.get(name) ?? 0) + 1);
  say(`${started()} runs; ${name}`);
  const fault = Promise.resolve(FAULTS[name]?.(scene))
    .catch((error: unknown) => void broken.push(error instanceof Error ? error.message : "?"))
    .finally(() => busy.delete(group));
  busy.set(group, fault);
}
await Promise.all(busy.values());
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
const wrong = broken.map((message) => `a fault failed: ${message}`);
const atRest = await until("every run is over", REST_MS, async () =>
  all().every(({ overAt }) => overAt !== undefined),
).catch(() => false);
if (!atRest) {
  const open = all().filter(({ overAt }) => overAt === undefined);
  wrong.push(`not over: ${open.map(({ run }) => run.runId).join(", ")}`);
}
// No lock is left for longer than its lease after the pods of its run are gone.
await sleep(LEASE_MS);
for (const server of scene.redis) {
  for (const pattern of ["*:runs/*", "*:mutex:*"]) {
    const keys = (await server.command("KEYS", pattern)) as string[];
    wrong.push(...keys.map((key) => `left in Redis: ${key}`));
  }
}
const lines = readLines(file);
wrong.push(...overlaps(lines, forced));
say(
  `${started()} runs started, ${lines.length} lines; faults: ${[...counts].map(([n, c]) => `${n} ${c}`).join(", ")}`,
);
await scene[Symbol.asyncDispose]();
for (const text of wrong) console.error(`WRONG ${text}`);
say(
  wrong.length === 0
    ? "no overlap, every run has its end, no lock is left"
    : `${wrong.length} violations`,
);
process.exitCode = wrong.length === 0 ? 0 : 1;
