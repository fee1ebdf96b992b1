/** What the rest of the cluster does: Jobs finish and go, people delete things, garbage is collected, time passes. */
import { RUN_ID_ANNOTATION } from "../../../src/api/names.ts";
import type { Job } from "../../../src/api/types.ts";
import { hasUnsettled } from "../../../src/domain/ledger.ts";
import { at } from "../../builders/objects.ts";
import { deleteJob, deleteLease, setJob, setOwner } from "./api-server.ts";
import { ledgerOf } from "./describe.ts";
import { once } from "./memo.ts";
import { blame, may, type Move } from "./move.ts";
import { rivalMoves } from "./rival-moves.ts";
import type { Scenario, World } from "./types.ts";

export function clusterMoves(world: World, scenario: Scenario): Move[] {
  return [
    ...world.jobs.flatMap((job) => jobMoves(world, scenario, job)),
    ...podMoves(world),
    ...garbageMoves(world),
    ...peopleMoves(world, scenario),
    ...statusMoves(world, scenario),
    ...rivalMoves(world, scenario),
  ];
}

const fair = (label: string, next: World): Move => ({ label, next, fault: false });
const fault = (label: string, next: World): Move => ({ label, next, fault: true });

function isOurs(job: Job): boolean {
  return job.metadata.annotations?.[RUN_ID_ANNOTATION] !== undefined;
}

function jobMoves(world: World, scenario: Scenario, job: Job): Move[] {
  const { uid, deletionTimestamp } = job.metadata;
  if (!isOurs(job)) {
    if (!may(world, scenario, "foreignDeleted")) return [];
    return [
      fault("a person deletes the foreign Job", blame(deleteJob(world, job), "foreignDeleted")),
    ];
  }
  if (job.status?.conditions !== undefined) {
    return deletionTimestamp === undefined
      ? [fair(`TTL deletes ${uid}`, deleteJob(world, job))]
      : [];
  }
  const time = at(world.now);
  const status = {
    completionTime: time,
    conditions: [{ type: "Complete", status: "True", lastTransitionTime: time }],
  };
  const finished = setJob(world, job, `finish ${time}`, () => ({ status })).world;
  const list = [
    fair(`${uid} finishes`, scenario.slowPods === true ? finished : withoutPods(finished, uid)),
  ];
  if (deletionTimestamp === undefined && may(world, scenario, "killed")) {
    const next = blame(deleteJob(world, job), "killed");
    list.push(fault(`a person deletes ${uid}, which runs`, next));
  }
  return list;
}

/** Pods go when their Job has finished or is being deleted. */
function podMoves(world: World): Move[] {
  return world.pods.flatMap(({ jobUid }) => {
    const job = world.jobs.find((j) => j.metadata.uid === jobUid);
    const ending =
      job === undefined ||
      job.metadata.deletionTimestamp !== undefined ||
      job.status?.conditions !== undefined;
    return ending ? [fair(`the pods of ${jobUid} are gone`, withoutPods(world, jobUid))] : [];
  });
}

function withoutPods(world: World, jobUid: string): World {
  return { ...world, pods: world.pods.filter((p) => p.jobUid !== jobUid) };
}

function garbageMoves(world: World): Move[] {
  const orphaned = (owners: { uid: string }[] | undefined): boolean =>
    owners?.some((o) => o.uid !== world.owner?.metadata.uid) ?? false;
  const list: Move[] = [];
  const { lease } = world;
  if (lease?.metadata.deletionTimestamp === undefined && lease !== undefined) {
    if (orphaned(lease.metadata.ownerReferences)) {
      list.push(fair("the ledger is garbage", deleteLease(world, lease)));
    }
  }
  for (const job of world.jobs) {
    const { deletionTimestamp, ownerReferences, uid } = job.metadata;
    if (deletionTimestamp === undefined && orphaned(ownerReferences)) {
      list.push(fair(`${uid} is garbage`, deleteJob(world, job)));
    }
  }
  return list;
}

function peopleMoves(world: World, scenario: Scenario): Move[] {
  const { owner, lease } = world;
  const list: Move[] = [];
  if (owner !== undefined && may(world, scenario, "ownerDeleted")) {
    const next = blame(setOwner(world, owner, true), "ownerDeleted");
    list.push(fault("the LockedCronJob is deleted", next));
  }
  if (owner === undefined && may(world, scenario, "ownerCreated")) {
    const ownersMade = world.ownersMade + 1;
    const next = setOwner(
      { ...world, ownersMade, missed: 0 },
      scenario.owner(ownersMade, world.now),
      false,
    );
    list.push(fault("one of the same name is made", blame(next, "ownerCreated")));
  }
  const unfinished = ledgerOf(lease)?.runs.some(hasUnsettled) === true;
  if (
    lease !== undefined &&
    lease.metadata.deletionTimestamp === undefined &&
    (unfinished || reported(world)) &&
    may(world, scenario, "ledgerDeleted")
  ) {
    const next = blame(deleteLease(world, lease), "ledgerDeleted");
    list.push(fault("a person deletes the ledger", next));
  }
  return list;
}

/** Whether the status says what a new ledger has to know. */
function reported({ owner, lease }: World): boolean {
  const { status } = owner ?? {};
  const ledger = ledgerOf(lease);
  return (
    status !== undefined &&
    status.token === ledger?.token &&
    status.lastScheduleTime === at(ledger?.lastTick ?? 0)
  );
}

/** Of all that a status says only what a lost ledger is rebuilt from matters here. */
function statusMoves(world: World, scenario: Scenario): Move[] {
  const { owner, lease } = world;
  const ledger = ledgerOf(lease);
  const { ledgerDeleted = 0, ownerDeleted = 0 } = scenario.faults;
  if (ledgerDeleted + ownerDeleted === 0 || owner === undefined) return [];
  if (scenario.noStatus === true) return [];
  if (ledger?.owner !== owner.metadata.uid) return [];
  const { lastLaunched } = ledger;
  const lastScheduleTime = lastLaunched === undefined ? undefined : at(lastLaunched);
  if (owner.status?.token === ledger.token && owner.status.lastScheduleTime === lastScheduleTime) {
    return [];
  }
  const { token } = ledger;
  const next = once(owner, `${token} ${lastScheduleTime}`, () => ({
    ...owner,
    status: { token, ...(lastScheduleTime === undefined ? {} : { lastScheduleTime }) },
  }));
  return [fair("the status is written", { ...world, owner: next })];
}

export function clockMoves(world: World, { times }: Scenario): Move[] {
  const next = times.find((time) => time > world.now);
  return next === undefined
    ? []
    : [{ ...fair(`it is ${at(next)}`, { ...world, now: next }), clock: true }];
}
