/** What the other LockedCronJob does that shares the mutex. */
import {
  COMPONENT_LABEL,
  LAUNCH_FINALIZER,
  MUTEX_COMPONENT,
  mutexLeaseName,
} from "../../../src/api/names.ts";
import type { Lease } from "../../../src/api/types.ts";
import { writeFence } from "./api-server.ts";
import { once } from "./memo.ts";
import { blame, may, type Move } from "./move.ts";
import { brokenByUs, rivalHolder } from "./rival.ts";
import type { Rival, Scenario, World } from "./types.ts";

export function rivalMoves(world: World, scenario: Scenario): Move[] {
  const { rival } = world;
  const { rivalRuns = 0 } = scenario;
  if (rivalRuns === 0) return [];
  if (rival === undefined || (rival.phase === "over" && rival.run < rivalRuns)) {
    const run = (rival?.run ?? 0) + 1;
    const next: Rival = { run, phase: "claimed", ledgerLost: false, token: rival?.token ?? 0 };
    return [move("the rival claims", { ...world, rival: same(next) })];
  }
  switch (rival.phase) {
    case "claimed": {
      if ((world.fence?.spec?.holderIdentity ?? "") !== "") return [];
      const { fenced, token } = take(world, rival);
      const next = { ...fenced, rival: same({ ...rival, phase: "fenced", token }) };
      return [move("the rival takes the fence", next)];
    }
    case "fenced": {
      const broken = brokenByUs(world, rival.token);
      const next = { ...world, rival: same({ ...rival, phase: "running" }) };
      return [move("the rival's pods start", broken === undefined ? next : { ...next, broken })];
    }
    case "running": {
      const list = [move("the rival's pods are gone", to(world, rival, "finished"))];
      if (!rival.ledgerLost && may(world, scenario, "rivalDeleted")) {
        const lost = { ...world, rival: same({ ...rival, ledgerLost: true }) };
        list.push(fault("the rival's ledger is deleted", blame(lost, "rivalDeleted")));
      }
      return list;
    }
    case "finished": {
      const over = to(world, rival, "over");
      const list = [move("the rival is over, and frees the fence", free(over, rival))];
      if (may(world, scenario, "rivalCrashed")) {
        list.push(fault("the rival is over, and its fence is left", blame(over, "rivalCrashed")));
      }
      return list;
    }
    case "over":
      return [];
  }
}

const move = (label: string, next: World): Move => ({ label, next, fault: false });
const fault = (label: string, next: World): Move => ({ label, next, fault: true });

const ROOT = {};

/** Equal rivals are one object. */
function same(rival: Rival): Rival {
  return once(ROOT, JSON.stringify(rival), () => rival);
}

function to(world: World, rival: Rival, phase: Rival["phase"]): World {
  return { ...world, rival: same({ ...rival, phase }) };
}

function take(world: World, rival: Rival): { fenced: World; token: number } {
  const token = (world.fence?.spec?.leaseTransitions ?? 0) + 1;
  const fenced = put(world, rivalHolder(rival), token, [LAUNCH_FINALIZER]);
  return { fenced, token };
}

function free(world: World, rival: Rival): World {
  const { spec } = world.fence ?? {};
  if (spec?.holderIdentity !== rivalHolder(rival)) return world;
  return put(world, undefined, spec.leaseTransitions ?? 0, []);
}

function put(world: World, holder: string | undefined, token: number, finalizers: string[]): World {
  const { fence } = world;
  const body = once(fence ?? ROOT, `${holder} ${token}`, () =>
    fenceOf(fence, holder, token, finalizers),
  );
  return writeFence(world, body, fence === undefined ? "create" : "update").world;
}

function fenceOf(
  old: Lease | undefined,
  holder: string | undefined,
  token: number,
  finalizers: string[],
): Lease {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      uid: "",
      resourceVersion: "",
      creationTimestamp: "",
      ...old?.metadata,
      name: mutexLeaseName("db"),
      namespace: "team",
      labels: { [COMPONENT_LABEL]: MUTEX_COMPONENT },
      finalizers,
    },
    spec: { holderIdentity: holder ?? null, leaseTransitions: token },
  };
}
