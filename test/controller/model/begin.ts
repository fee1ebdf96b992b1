import {
  LEDGER_ANNOTATION,
  LEDGER_COMPONENT,
  COMPONENT_LABEL,
  NAME_LABEL,
  ledgerName,
} from "../../../src/api/names.ts";
import type { Job, Lease } from "../../../src/api/types.ts";
import { serializeLedger } from "../../../src/domain/ledger-json.ts";
import { aJob, aLedger, aRun } from "../../builders/objects.ts";
import { serve } from "./api-server.ts";
import { FAULTS, type Known, type Scenario, type World } from "./types.ts";

/** A due tick, nothing done about it yet, and every cache up to date. */
export function begin(scenario: Scenario): World {
  const owner = scenario.owner(1, scenario.times[0] ?? 0);
  const empty: World = {
    now: scenario.times[0] ?? 0,
    owner,
    ownersMade: 1,
    lease: undefined,
    fence: undefined,
    fenceWrites: 0,
    rival: undefined,
    jobs: scenario.foreignJob === true ? [foreignJob()] : [],
    pods: [],
    leaseWrites: 0,
    jobWrites: 0,
    created: [],
    missed: 0,
    flights: [],
    processes: [],
    watches: [],
    dead: [],
    past: [],
    faults: Object.fromEntries(FAULTS.map((f) => [f, 0])) as World["faults"],
    forbid: owner.spec.concurrencyPolicy === "Forbid",
    everyVersion: scenario.everyVersion === true,
  };
  const made =
    scenario.noLedger === true
      ? empty
      : serve(empty, { verb: "create", of: "lease", body: newLease(owner) }).world;
  const known: Known = { owner, lease: made.lease, jobs: [] };
  return {
    ...made,
    processes: scenario.processes.map((name) => ({ name, dead: false, known, notes: [] })),
    watches: scenario.processes.map(() => []),
  };
}

function newLease({ metadata, spec }: ReturnType<Scenario["owner"]>): Lease {
  const ledger = aLedger({
    owner: metadata.uid,
    schedule: JSON.stringify([spec.schedule, spec.timeZone ?? null]),
  });
  const { name, namespace, uid } = metadata;
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: ledgerName(name),
      namespace,
      uid: "",
      resourceVersion: "",
      creationTimestamp: metadata.creationTimestamp,
      labels: { [NAME_LABEL]: name, [COMPONENT_LABEL]: LEDGER_COMPONENT },
      annotations: { [LEDGER_ANNOTATION]: serializeLedger(ledger) },
      ownerReferences: [{ apiVersion: "", kind: "LockedCronJob", name, uid }],
    },
    spec: { leaseTransitions: 0 },
  };
}

function foreignJob(): Job {
  const { jobName } = aRun();
  return aJob({
    name: jobName,
    uid: "foreign",
    labels: {},
    annotations: {},
    ownerReferences: [],
    finalizers: [],
  });
}
