/**
 * The API server as the model has it: what each request does to the world, with resourceVersions, uids and finalizers as
 * the real one has them. Two invariants are judged here, at the moment a Job is made: no second one for a tick, no two
 * runs at once; and that a token never goes back.
 */
import {
  LAUNCH_FINALIZER,
  LEDGER_ANNOTATION,
  NAME_LABEL,
  TICK_ANNOTATION,
  TOKEN_ANNOTATION,
} from "../../../src/api/names.ts";
import type { Job, Lease, LockedCronJob, ObjectMeta } from "../../../src/api/types.ts";
import { at, HOUR } from "../../builders/objects.ts";
import { ledgerOf } from "./describe.ts";
import { once } from "./memo.ts";
import { brokenByRival, podsNamed, rivalLedger } from "./rival.ts";
import type { Answer, Failure, Request, WatchEvent, World } from "./types.ts";

type Served = { world: World; answer: Answer };

const ANSWERS = {};
const failed = (world: World, failure: Failure): Served => ({
  world,
  answer: once(ANSWERS, failure, () => ({ failed: failure })),
});
const ok = (object: object | undefined): Answer =>
  once(object ?? ANSWERS, "ok", () => ({ ok: object }));
const found = (world: World, object: object | undefined): Served =>
  object === undefined ? failed(world, "NotFound") : { world, answer: ok(object) };

export function serve(world: World, request: Request): Served {
  switch (request.verb) {
    case "elect":
      return { world, answer: { elected: "won" } };
    case "get":
      if (request.of === "owner") return found(world, world.owner);
      if (request.of === "lease") return found(world, world.lease);
      if (request.of === "fence") return found(world, world.fence);
      if (request.of === "rival") return found(world, rivalLedger(world));
      return found(world, jobNamed(world, request.name));
    case "list":
      return { world, answer: { ok: listed(world, request) } };
    case "create":
      if (request.of === "fence") return writeFence(world, request.body, "create");
      return request.of === "lease"
        ? createLease(world, request.body)
        : createJob(world, request.body);
    case "update":
      if (request.of === "fence") return writeFence(world, request.body, "update");
      return updateLease(world, request.body);
    case "unhold": {
      const job = jobNamed(world, request.name);
      if (job === undefined) return failed(world, "NotFound");
      if (job.metadata.uid !== request.uid) return failed(world, "Conflict");
      if (!(job.metadata.finalizers ?? []).includes(LAUNCH_FINALIZER)) return found(world, job);
      return setJob(world, job, "unhold", ({ metadata }) => ({
        metadata: withoutFinalizer(metadata),
      }));
    }
    case "delete": {
      const job = jobNamed(world, request.name);
      if (job === undefined) return failed(world, "NotFound");
      if (job.metadata.uid !== request.uid) return failed(world, "Conflict");
      return { world: deleteJob(world, job), answer: ok(undefined) };
    }
  }
}

function listed(world: World, request: Extract<Request, { verb: "list" }>): object {
  if (request.of === "podsNamed") return { items: podsNamed(world, request.jobName) };
  if (request.of === "pods") {
    return { items: world.pods.filter((p) => p.jobUid === request.jobUid) };
  }
  return { items: world.jobs.filter((j) => j.metadata.labels?.[NAME_LABEL] !== undefined) };
}

export function jobNamed(world: World, name: string): Job | undefined {
  return world.jobs.find((j) => j.metadata.name === name);
}

export function tell(world: World, event: WatchEvent): World {
  if (!world.everyVersion) return world;
  return {
    ...world,
    watches: world.watches.map((queue, i) =>
      world.processes[i]?.dead === true ? [] : [...queue, event],
    ),
  };
}

function createLease(world: World, body: Lease): Served {
  if (world.lease !== undefined) return failed(world, "AlreadyExists");
  const now = at(world.now);
  return setLease(world, body, `create ${now}`, (writes) => ({
    uid: `lease-${writes}`,
    creationTimestamp: now,
  }));
}

/** A PUT with uid and resourceVersion; one without either writes over what is there, as the real server lets it. */
function updateLease(world: World, body: Lease): Served {
  const { lease } = world;
  const { uid, resourceVersion } = body.metadata as Partial<ObjectMeta>;
  if (lease === undefined) {
    return uid === undefined ? createLease(world, body) : failed(world, "Conflict");
  }
  if (uid !== undefined && uid !== lease.metadata.uid) return failed(world, "Conflict");
  if (resourceVersion !== undefined && resourceVersion !== lease.metadata.resourceVersion) {
    return failed(world, "Conflict");
  }
  const { deletionTimestamp } = lease.metadata;
  const held = (meta: ObjectMeta): boolean => (meta.finalizers ?? []).length > 0;
  if (deletionTimestamp !== undefined && held(body.metadata) && !held(lease.metadata)) {
    return failed(world, "Forbidden");
  }
  const back = (body.spec?.leaseTransitions ?? 0) < (lease.spec?.leaseTransitions ?? 0);
  const judged = back ? { ...world, broken: "the fencing token went back" } : world;
  const { creationTimestamp } = lease.metadata;
  return setLease(judged, body, `update ${lease.metadata.uid} ${deletionTimestamp}`, () => ({
    uid: lease.metadata.uid,
    creationTimestamp,
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  }));
}

/** As updateLease, without deletion, which fences do not meet here. */
export function writeFence(world: World, body: Lease, verb: "create" | "update"): Served {
  const { fence } = world;
  if (verb === "create" && fence !== undefined) return failed(world, "AlreadyExists");
  const { uid, resourceVersion } = body.metadata as Partial<ObjectMeta>;
  if (verb === "update") {
    if (fence === undefined) return failed(world, "NotFound");
    if (uid !== fence.metadata.uid) return failed(world, "Conflict");
    if (resourceVersion !== undefined && resourceVersion !== fence.metadata.resourceVersion) {
      return failed(world, "Conflict");
    }
  }
  const fenceWrites = world.fenceWrites + 1;
  const next = once(body, `fence ${verb} ${fenceWrites}`, () => {
    const { renewTime: _, ...spec } = body.spec ?? {};
    const metadata = { ...body.metadata, uid: "fence", resourceVersion: String(fenceWrites) };
    return { ...body, spec, metadata };
  });
  const back = (next.spec?.leaseTransitions ?? 0) < (fence?.spec?.leaseTransitions ?? 0);
  const judged = back ? { ...world, broken: "the token of a mutex went back" } : world;
  return {
    world: tell(
      { ...judged, fenceWrites, fence: next },
      { of: "fence", gone: false, object: next },
    ),
    answer: ok(next),
  };
}

/** Puts the object there; one that is being deleted and that nothing holds any more goes. */
function setLease(
  world: World,
  body: Lease,
  change: string,
  metadata: (writes: number) => Partial<ObjectMeta>,
): Served {
  const leaseWrites = world.leaseWrites + 1;
  const lease = once(body, `${change} ${leaseWrites}`, () =>
    plain({
      ...body,
      metadata: {
        ...body.metadata,
        resourceVersion: String(leaseWrites),
        ...metadata(leaseWrites),
      },
    }),
  );
  const gone = isOver(lease.metadata);
  const missed = world.missed + newlyMissed(world, lease);
  const next = { ...world, leaseWrites, missed, lease: gone ? undefined : lease };
  return { world: tell(next, { of: "lease", gone, object: lease }), answer: ok(lease) };
}

function newlyMissed({ owner, lease: old }: World, lease: Lease): number {
  const ledger = ledgerOf(lease);
  const before = ledgerOf(old);
  if (ledger === undefined || ledger.owner !== owner?.metadata.uid) return 0;
  return Math.max(0, ledger.missed - (before?.owner === ledger.owner ? before.missed : 0));
}

function createJob(world: World, body: Job): Served {
  if (jobNamed(world, body.metadata.name) !== undefined) return failed(world, "AlreadyExists");
  const { annotations = {}, ownerReferences = [] } = body.metadata;
  const ownerUid = ownerReferences[0]?.uid ?? "";
  const tick = Date.parse(annotations[TICK_ANNOTATION] ?? "");
  const token = Number(annotations[TOKEN_ANNOTATION]);
  const uid = `job-${world.created.length + 1}`;
  const made: World = {
    ...world,
    created: [...world.created, { ownerUid, tick, token }],
    pods: [...world.pods, { jobUid: uid, ownerUid }],
  };
  const broken = brokenBy(world, { ownerUid, tick, token });
  const created = at(world.now - HOUR);
  return setJob(
    broken === undefined ? made : { ...made, broken },
    body,
    `create ${uid} ${created}`,
    // Made long ago by its own account: nothing that waits for a Job to be old enough waits in the model.
    ({ metadata }) => ({ metadata: { ...metadata, uid, creationTimestamp: created } }),
  );
}

function brokenBy(world: World, made: World["created"][number]): string | undefined {
  const before = world.created.filter((c) => c.ownerUid === made.ownerUid);
  if (before.some((c) => c.tick === made.tick)) return "a second Job was made for the tick";
  // With policy Allow an older tick's Job may be made later; its token is older, too.
  if (before.some((c) => c.tick < made.tick !== c.token < made.token)) {
    return "the fencing token did not grow";
  }
  if (world.forbid && world.pods.some((p) => p.ownerUid === made.ownerUid)) {
    return "two runs are active at once though the policy is Forbid";
  }
  return brokenByRival(world, made.token);
}

export function setJob(
  world: World,
  old: Job,
  change: string,
  changed: (job: Job) => Partial<Job>,
): Served {
  const jobWrites = world.jobWrites + 1;
  const job = once(old, `${change} ${jobWrites}`, () => {
    const next = { ...old, ...changed(old) };
    return { ...next, metadata: { ...next.metadata, resourceVersion: String(jobWrites) } };
  });
  const gone = isOver(job.metadata);
  const others = world.jobs.filter((j) => j.metadata.name !== job.metadata.name);
  const next = { ...world, jobWrites, jobs: gone ? others : [...others, job] };
  const labelled = job.metadata.labels?.[NAME_LABEL] !== undefined;
  return {
    world: labelled ? tell(next, { of: "job", gone, object: job }) : next,
    answer: ok(job),
  };
}

/** DELETE by whomever: at once, or as soon as the last finalizer is off. */
export function deleteJob(world: World, job: Job): World {
  if (job.metadata.deletionTimestamp !== undefined) return world;
  const deletionTimestamp = at(world.now);
  return setJob(world, job, `delete ${deletionTimestamp}`, ({ metadata }) => ({
    metadata: { ...metadata, deletionTimestamp },
  })).world;
}

export function deleteLease(world: World, lease: Lease): World {
  if (lease.metadata.deletionTimestamp !== undefined) return world;
  const deletionTimestamp = at(world.now);
  return setLease(world, lease, `delete ${deletionTimestamp}`, () => ({ deletionTimestamp })).world;
}

export function setOwner(world: World, owner: LockedCronJob, gone: boolean): World {
  const next = { ...world, owner: gone ? undefined : owner };
  return tell(next, { of: "owner", gone, object: owner });
}

function isOver({ deletionTimestamp, finalizers = [] }: ObjectMeta): boolean {
  return deletionTimestamp !== undefined && finalizers.length === 0;
}

function withoutFinalizer(metadata: ObjectMeta): ObjectMeta {
  const finalizers = (metadata.finalizers ?? []).filter((f) => f !== LAUNCH_FINALIZER);
  return { ...metadata, finalizers };
}

/** The ledger's decisions are a report that nothing is decided on; left out, equal states look equal. */
function plain(lease: Lease): Lease {
  const text = lease.metadata.annotations?.[LEDGER_ANNOTATION];
  if (text === undefined) return lease;
  const ledger = { ...(JSON.parse(text) as object), decisions: [] };
  const annotations = {
    ...lease.metadata.annotations,
    [LEDGER_ANNOTATION]: JSON.stringify(ledger),
  };
  const { renewTime: _, ...spec } = lease.spec ?? {};
  return { ...lease, spec, metadata: { ...lease.metadata, annotations } };
}
