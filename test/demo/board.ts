/** What is known of each tick, gathered from the ledger, the replicas' logs, the pods and the Redis nodes. */
import type { V1Pod } from "@kubernetes/client-node";
import type { Decision, Run } from "../../src/domain/ledger.ts";
import { pods, type KubeObject, type ResourceType } from "../../src/kube/index.ts";
import type { Holder } from "../../src/lock/index.ts";
import { openStream } from "../chaos/stream.ts";
import type { LedgerVersion } from "../chaos/ticks.ts";
import type { LogLine } from "../harness/replica.ts";
import { dueTicks, missOf } from "./account.ts";
import { NAMESPACE, type Sample, type Stage } from "./stage.ts";

/** One tick as the table shows it. Whatever is not known (yet) is not there. */
export interface Row {
  readonly sample: string;
  readonly tick: number;
  readonly winner?: string;
  /** The attempt that brought the Job, when it was not the first. */
  readonly attempt?: number;
  readonly election?: { readonly outcome: string; readonly ms: number };
  /** Job created, ms after the tick. */
  readonly latencyMs?: number;
  readonly phase?: string;
  /** The last line that the pod has logged. */
  readonly says?: string;
  /** As last seen while the run held it. */
  readonly lock?: {
    readonly votes: number;
    readonly nodes: number;
    readonly ttlMs: number;
    readonly held: boolean;
  };
  readonly missed?: Pick<Decision, "reason" | "message">;
  /** Nothing will change any more. */
  readonly settled: boolean;
}

export type RedisState = "up" | "down" | "quarantined";

export interface LockView {
  readonly sample: string;
  readonly key: string | undefined;
  readonly holder: Holder | null;
  /** Nodes that answered. */
  readonly answers: number;
}

export interface Board extends AsyncDisposable {
  /** Every tick since the sample was applied, oldest first. */
  rows(): readonly Row[];
  locks(): readonly LockView[];
  /** Each Redis node as the replicas see it. */
  redis(): readonly RedisState[];
  /** The next tick of a sample, ms; undefined while its ledger is not there. */
  next(sample: string): number | undefined;
}

type Pod = V1Pod & KubeObject & { metadata: { name: string } };
const PODS = pods as ResourceType<Pod>;

const LOOK_MS = 500;
/** A log that cannot be had by then is done without. */
const LOG_PATIENCE_MS = 5_000;

export async function openBoard(stage: Stage): Promise<Board> {
  const { witness, samples, cluster, client, lock } = stage;
  /** By sample, tick and replica. */
  const elections = new Map<string, { outcome: string; ms: number }>();
  const latencies = new Map<string, number>();
  const settledRows = new Map<string, Row>();
  const podOf = new Map<string, Pod>();
  const logOf = new Map<string, string>();
  /** Jobs whose log is complete. */
  const logRead = new Set<string>();
  const seenLock = new Map<string, { votes: number; ttlMs: number; at: number }>();
  const finished = new Map<string, number>();
  let views: readonly LockView[] = [];
  /** What a replica has said of its nodes last. */
  let redisHealth = "";
  const stop = new AbortController();

  const stream = await openStream(client, PODS, NAMESPACE, (change, pod) => {
    const job = pod.metadata.labels?.["batch.kubernetes.io/job-name"];
    if (job === undefined || change === "DELETED") return;
    const before = podOf.get(job)?.status?.phase;
    podOf.set(job, pod);
    const phase = pod.status?.phase;
    if (phase !== before && phase !== "Pending") void readLog(job, pod.metadata.name, phase);
  });

  /** Also while it runs: the first line is there before the last one. */
  async function readLog(job: string, pod: string, phase: string | undefined): Promise<void> {
    if (stage.mode !== "nodes") return;
    const output = await cluster.kubectl(["logs", pod, "--namespace", NAMESPACE]).catch(() => "");
    if (logRead.has(job)) return;
    const last = output.trim().split("\n").at(-1);
    if (last !== undefined && last !== "") logOf.set(job, last);
    if (phase !== "Running") logRead.add(job);
  }

  async function lookAtLock(sample: Sample): Promise<LockView> {
    const key = witness
      .history(sample.name)
      .findLast(({ ledger }) => ledger.runs.length > 0)
      ?.ledger.runs.at(-1)?.lockKey;
    if (key === undefined) return { sample: sample.name, key, holder: null, answers: 0 };
    const { holder, perNode } = await lock.inspect(key);
    const answers = perNode.filter(({ outcome }) => ["held", "absent"].includes(outcome)).length;
    if (holder !== null) {
      const runId = holder.value.split("#")[0] ?? "";
      seenLock.set(runId, { votes: holder.votes, ttlMs: holder.pttlMs, at: performance.now() });
    }
    return { sample: sample.name, key, holder, answers };
  }

  async function watchLocks(): Promise<void> {
    while (!stop.signal.aborted) {
      views = await Promise.all(samples.map(lookAtLock));
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
  const watching = watchLocks();

  function hear(replica: string, { event, key, tick, outcome, ...rest }: LogLine): void {
    if (event === "RedisHealth") redisHealth = rest.reason ?? "";
    if (tick === undefined || key === undefined) return;
    const id = `${key.slice(key.indexOf("/") + 1)} ${Date.parse(tick)} ${replica}`;
    if (event === "Launched") latencies.set(id, Number(rest["latencyMs"]));
    if (event === "Elected" && outcome !== undefined) {
      elections.set(id, { outcome, ms: Number(rest["ms"]) });
    }
  }
  stage.onLine(hear);

  function rowOf({ name }: Sample, tick: number): Row {
    const history = witness.history(name);
    const runs = history.flatMap(({ ledger }) => ledger.runs.filter((run) => run.tick === tick));
    const run = runs.at(-1);
    const job = witness.jobs(name).find((j) => j.tick === tick);
    const missed = job === undefined ? missOf({ history }, tick) : undefined;
    if (run === undefined || missed !== undefined) {
      return { sample: name, tick, settled: missed !== undefined, ...defined({ missed }) };
    }
    const claimant = runs[0]?.attempts[0]?.by.split("/")[0];
    const winner = winnerOf(run, job?.attempt) ?? claimant;
    const over = isOver(history, run);
    return {
      sample: name,
      tick,
      settled: over && isComplete(run),
      ...defined({
        winner,
        attempt: job?.attempt,
        election: elections.get(`${name} ${tick} ${claimant}`),
        latencyMs: latencies.get(`${name} ${tick} ${winner}`),
        phase: podOf.get(run.jobName)?.status?.phase,
        says: logOf.get(run.jobName),
        lock: lockOf(run, over),
      }),
    };
  }

  function isOver(history: readonly LedgerVersion[], run: Run): boolean {
    const over = history.some(({ ledger }) =>
      ledger.decisions.some((d) => d.decision === "Finished" && d.tick === run.tick),
    );
    if (over && !finished.has(run.runId)) finished.set(run.runId, performance.now());
    return over;
  }

  /** Its log comes a moment after its end. */
  function isComplete(run: Run): boolean {
    const since = performance.now() - (finished.get(run.runId) ?? Infinity);
    return stage.mode !== "nodes" || logRead.has(run.jobName) || since > LOG_PATIENCE_MS;
  }

  function lockOf(run: Run, over: boolean): Row["lock"] {
    const seen = seenLock.get(run.runId);
    if (seen === undefined) return undefined;
    const held = !over && performance.now() - seen.at < 3 * LOOK_MS;
    return { votes: seen.votes, nodes: lock.nodes.length, ttlMs: seen.ttlMs, held };
  }

  function row(sample: Sample, tick: number): Row {
    const id = `${sample.name} ${tick}`;
    const known = settledRows.get(id) ?? rowOf(sample, tick);
    if (known.settled) settledRows.set(id, known);
    return known;
  }

  const ledgerOf = (name: string) => witness.history(name).at(-1)?.ledger;

  return {
    rows() {
      return samples
        .flatMap((sample) => {
          const anchor = witness.history(sample.name)[0]?.ledger.anchor;
          if (anchor === undefined) return [];
          return dueTicks(sample.schedule, anchor, Date.now()).map((tick) => row(sample, tick));
        })
        .sort((a, b) => a.tick - b.tick || a.sample.localeCompare(b.sample));
    },
    locks: () => views,
    redis: () => stage.redis.map(({ port }) => redisState(redisHealth, port)),
    next(name) {
      const sample = samples.find((s) => s.name === name);
      const ledger = ledgerOf(name);
      if (sample === undefined || ledger === undefined) return undefined;
      const last = dueTicks(sample.schedule, ledger.anchor, Date.now()).at(-1) ?? ledger.anchor;
      return sample.schedule.next(last) ?? undefined;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([watching, stream.close()]);
    },
  };
}

/** The replica whose attempt the Job bears; before there is one, the replica that claimed the tick. */
function winnerOf(run: Run, attempt: number | undefined): string | undefined {
  const by = run.attempts.find(({ n }) => attempt === undefined || n === attempt)?.by;
  return by?.split("/")[0];
}

/** From "4 of 5 Redis nodes up (3 needed); 3/127.0.0.1:6379 QUARANTINED (…)": nodes that are well are not named. */
function redisState(health: string, port: number): RedisState {
  const why = new RegExp(`:${port} (\\w+)`).exec(health)?.[1];
  if (why === undefined) return "up";
  return why === "QUARANTINED" ? "quarantined" : "down";
}

/** An object without the fields that are undefined. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as never;
}
