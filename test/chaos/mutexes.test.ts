/** Mutexes on a real API server, real Redis nodes and real processes: what shares one never runs at the same time. */
import { afterAll, describe, expect, it } from "vitest";
import { holderOf } from "../../src/domain/lock-terms.ts";
import { mutexLeaseName } from "../../src/api/names.ts";
import { EventReason, Reason } from "../../src/api/reasons.ts";
import type { Lease } from "../../src/api/types.ts";
import { runCli } from "../../src/cli/run.ts";
import { resources } from "../../src/controller/caches.ts";
import { hasReason } from "../../src/kube/index.ts";
import { until } from "../cluster/proc.ts";
import { startRedisNodes } from "../redis/server.ts";
import "./lost-locks.ts";
import { conditionOf, nameFor, NEVER_FINISHES, useWorld, type Lab } from "./world.ts";

const world = useWorld();
/** So long a dead process's requests count as under way, instead of two minutes. */
const requestBoundMs = 500;
const labs: Lab[] = [];
const aLab = async (system?: string): Promise<Lab> => {
  const lab = await world().lab(system);
  labs.push(lab);
  return lab;
};
afterAll(() => Promise.all(labs.map((lab) => lab[Symbol.asyncDispose]())));

async function fence(lab: Lab, name: string): Promise<Lease | undefined> {
  try {
    return await world().client.get(resources.leases, {
      namespace: lab.namespace,
      name: mutexLeaseName(name),
    });
  } catch (error) {
    if (hasReason(error, "NotFound")) return undefined;
    throw error;
  }
}

/** Every Job of these, in the order of their creation; each must have ended in the ledger before the next was created. */
function inTurn(lab: Lab, ...names: string[]) {
  const all = names
    .flatMap((name) => lab.seen.jobs(name).map((job) => ({ name, job })))
    .toSorted((a, b) => a.job.createdAt - b.job.createdAt);
  const overlaps = all.slice(1).flatMap(({ job }, i) => {
    const before = all[i]!;
    const over = lab.seen
      .history(before.name)
      .find(
        ({ version, ledger }) =>
          version > before.job.createdAt &&
          !ledger.runs.some((r) => r.runId === before.job.runId && r.ended !== true),
      );
    return over === undefined || over.version > job.createdAt
      ? [`${job.name} was created before ${before.job.name} was over`]
      : [];
  });
  return { overlaps, tokens: all.map(({ job }) => job.token) };
}

/** The same in the order in which they must come, each once. */
const growing = (tokens: readonly number[]): number[] =>
  [...new Set(tokens)].toSorted((a, b) => a - b);

/** What `lockedcron locks` prints. */
async function locksOf(lab: Lab): Promise<string> {
  let text = "";
  const settings = [
    `--redis=${world()
      .redis.map(({ url }) => url)
      .join(",")}`,
    `--kubeconfig=${world().cluster.kubeconfigPath}`,
    `--namespace=${lab.namespace}`,
    `--watch-namespaces=${lab.namespace}`,
  ];
  await runCli(["locks", ...settings], {
    stdin: (async function* () {})(),
    out(more) {
      text += more;
      return Promise.resolve(true);
    },
    error(more) {
      text += more;
    },
    now: Date.now,
    env: {},
  });
  return text;
}

const lock = { mutexes: ["db"], waitSeconds: 300 };

describe.concurrent("runs that share a mutex", () => {
  it("take turns, and their tokens grow", async () => {
    const lab = await aLab();
    await Promise.all(["a", "b"].map((name) => lab.replica(name)));
    await Promise.all(["one", "two"].map((name) => lab.create(name, { lock })));
    await lab.seen.created("one", 4);
    await lab.seen.created("two", 4);
    expect(await lab.violationsAtEnd()).toEqual([]);
    const { overlaps, tokens } = inTurn(lab, "one", "two");
    expect(overlaps).toEqual([]);
    expect(tokens).toEqual(growing(tokens));
    await until("the fence is free", 90_000, async () => {
      const lease = await fence(lab, "db");
      return lease !== undefined && (lease.spec?.holderIdentity ?? null) === null;
    });
  });

  it("take turns without any Redis, too", async () => {
    const redis = await startRedisNodes(3);
    const lab = await aLab();
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => void (await Promise.all(redis.map((server) => server.stop()))));
    const choices = { redis: redis.map(({ url }) => url) };
    await Promise.all(["a", "b"].map((name) => lab.replica(name, choices)));
    await Promise.all(redis.map((server) => server.kill()));
    await Promise.all(["one", "two"].map((name) => lab.create(name, { lock })));
    await lab.seen.created("one", 3);
    await lab.seen.created("two", 3);
    expect(await lab.violationsAtEnd()).toEqual([]);
    expect(inTurn(lab, "one", "two").overlaps).toEqual([]);
  });

  it("wait, say so, and give up when waitSeconds are over", async () => {
    const lab = await aLab();
    const replica = await lab.replica("a", { flags: ["--log-level=debug"] });
    await lab.create("holder", { lock, job: NEVER_FINISHES });
    const [held] = await lab.seen.created("holder", 1);
    const acquired = await lab.seen.until(
      "the event for debugging",
      () => lab.seen.events(EventReason.LockAcquired)[0]?.message,
    );
    expect(acquired).toMatch(
      new RegExp(
        `^Job ${held!.name} holds \\S+/holder, \\S+:mutex:\\S+/db with a lease of 30 s, token ${held!.token}$`,
      ),
    );
    await lab.create("waiter", { lock: { mutexes: ["db"], waitSeconds: 5 } });
    await lab.seen.until("it waits", () => {
      const run = lab.seen.ledger("waiter")?.runs[0];
      return run?.attempts.length === 0 && run.waiting?.on?.reason === Reason.MutexBusy;
    });
    const condition = await lab.seen.until("the condition says so", () => {
      const c = conditionOf(lab.seen.owner("waiter"), "MutexesAvailable");
      return c?.status === "False" && c;
    });
    expect(condition).toMatchObject({
      reason: Reason.MutexBusy,
      message: expect.stringContaining(`${lab.namespace}/holder/${held!.runId}`) as string,
    });
    await lab.seen.until("the event", () =>
      lab.seen.events(EventReason.MutexBusy).find((e) => e.involvedObject.name === "waiter"),
    );
    const shown = await locksOf(lab);
    const [, own, mutex] = shown.trim().split("\n");
    expect(own).toMatch(new RegExp(`/holder +${held!.runId} +held +.*[0-9.]+s.* a `));
    expect(mutex).toMatch(/:mutex:\S+\/db +\S+ +held .* held, token \d+$/);
    const given = await lab.seen.until("it gives up", () =>
      lab.seen
        .ledger("waiter")
        ?.decisions.find((d) => d.reason === Reason.MutexBusy && d.decision === "Missed"),
    );
    expect(given.message).toContain("waitSeconds");
    expect(lab.seen.jobs("waiter")).toEqual([]);
    const metrics = await replica.metrics();
    expect(metrics).toMatch(/lockedcron_mutex_busy_total [1-9]/);
    expect(metrics).toMatch(/mutex_wait_seconds_count\{outcome="gaveUp"\} [1-9]/);
    expect(metrics).toMatch(/mutex_wait_seconds_count\{outcome="taken"\} 1\n/);
    expect(metrics).toMatch(/lockedcron_runs_active 1\n/);
    expect(metrics).toMatch(/lock_renewals_total\{outcome="renewed"\} [1-9]/);
  });

  it("wait for a quorum when onQuorumLoss says so, though the fence is free", async () => {
    const redis = await startRedisNodes(3);
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => void (await Promise.all(redis.map((server) => server.stop()))));
    const lab = await aLab();
    await lab.replica("a", { redis: redis.map(({ url }) => url) });
    await lab.create("holder", { lock, job: NEVER_FINISHES });
    const [held] = await lab.seen.created("holder", 1);
    await lab.patch("holder", { suspend: true });
    await lab.create("waiter", { lock: { ...lock, onQuorumLoss: "Wait" } });
    const waitsFor = (reason: string) =>
      lab.seen.until(`it waits: ${reason}`, () =>
        lab.seen.ledger("waiter")?.runs.find(({ waiting }) => waiting?.on?.reason === reason),
      );
    await waitsFor(Reason.MutexBusy);
    const [, ...majority] = redis;
    for (const server of majority) server.pause();
    await world().client.delete(resources.jobs, { namespace: lab.namespace, name: held!.name });
    const { waiting } = await waitsFor(Reason.NoQuorum);
    expect(waiting?.on?.message).toContain("lock.onQuorumLoss is Wait");
    expect(lab.seen.jobs("waiter")).toEqual([]);
    for (const server of majority) server.resume();
    await lab.seen.created("waiter", 1);
  });

  it("get it from a run whose Job was deleted by hand", async () => {
    const lab = await aLab();
    await lab.replica("a");
    await lab.create("holder", { lock, job: NEVER_FINISHES });
    const [held] = await lab.seen.created("holder", 1);
    await lab.patch("holder", { suspend: true });
    await lab.create("waiter", { lock });
    await lab.seen.until("it waits", () => lab.seen.ledger("waiter")?.runs[0]?.waiting?.on);
    await world().client.delete(resources.jobs, { namespace: lab.namespace, name: held!.name });
    const [waiter] = await lab.seen.created("waiter", 1);
    expect(waiter!.token).toBeGreaterThan(held!.token);
  });
});

describe.concurrent("a replica is killed with a mutex in hand", () => {
  it.each(["fenced", "granted", "ended"] as const)("after it is %s", async (after) => {
    const lab = await aLab();
    const name = nameFor(lab.namespace, "one", ["victim", "heir"]);
    await lab.replica("heir", { faults: { requestBoundMs } });
    const victim = await lab.replica("victim", {
      faults: { requestBoundMs, steps: [{ after, key: lab.key(name), do: "kill" }] },
    });
    await lab.create(name, { lock });
    await victim.exited;
    await lab.create("two", { lock });
    await lab.replica("victim", { faults: { requestBoundMs } });
    await lab.seen.created(name, 3);
    await lab.seen.created("two", 3);
    expect(await lab.violationsAtEnd()).toEqual([]);
    const { overlaps, tokens } = inTurn(lab, name, "two");
    expect(overlaps).toEqual([]);
    expect(tokens).toEqual(growing(tokens));
  });
});

describe.concurrent("a mutex of another namespace", () => {
  it("is refused by a condition that names it, and taken when it is shared", async () => {
    const pool = await aLab();
    const lab = await aLab(pool.namespace);
    const mutex = `${pool.namespace}/db`;
    const first = await lab.replica("a");
    await lab.create("one", { lock: { mutexes: [mutex] } });
    const condition = await lab.seen.until("the condition", () => {
      const c = conditionOf(lab.seen.owner("one"), "Ready");
      return c?.reason === Reason.MutexNotAllowed && c;
    });
    expect(condition.message).toContain(mutex);
    expect(conditionOf(lab.seen.owner("one"), "Stalled")?.status).toBe("True");
    expect(lab.seen.jobs("one")).toEqual([]);
    await first.stop();
    await lab.replica("a", { flags: [`--shared-mutex-namespaces=${pool.namespace}`] });
    await lab.seen.created("one", 1);
    expect(await fence(pool, "db")).toBeDefined();
  });

  it("whose Lease is somebody else's is left alone", async () => {
    const lab = await aLab();
    await lab.replica("a");
    await world().client.create(resources.leases, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: mutexLeaseName("db"), namespace: lab.namespace },
      spec: { holderIdentity: holderOf("x/y", "z") },
    } as unknown as Lease);
    await lab.create("one", { lock });
    await lab.seen.until("the condition", () => {
      const c = conditionOf(lab.seen.owner("one"), "MutexesAvailable");
      return c?.reason === Reason.MutexClash && c;
    });
    expect((await fence(lab, "db"))?.spec?.holderIdentity).toBe("x/y/z");
    await world().client.delete(resources.leases, {
      namespace: lab.namespace,
      name: mutexLeaseName("db"),
    });
    await lab.seen.created("one", 1);
  });
});
