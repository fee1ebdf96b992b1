/** The safeguards of the launch protocol, each taken away by changing what the real code asks of the world. */
import { LAUNCH_FINALIZER, LEDGER_ANNOTATION, TOKEN_ANNOTATION } from "../../../src/api/names.ts";
import type { Lease, ObjectMeta } from "../../../src/api/types.ts";
import { mustStay, type Ledger, type Run } from "../../../src/domain/ledger.ts";
import { ledgerOf } from "./describe.ts";
import type { Request, Tamper } from "./types.ts";

/** The Job's launch finalizer is left out of its POST. */
export const jobWithoutFinalizer: Tamper = {
  request(request) {
    if (request.verb !== "create" || request.of !== "job") return request;
    return { ...request, body: { ...request.body, metadata: unheld(request.body.metadata) } };
  },
};

/** As soon as the Job is known, every attempt counts as settled, so the finalizer goes at once. */
export const finalizerDroppedEarly: Tamper = onLedger((ledger) =>
  eachRun(ledger, (run) =>
    run.jobUID === undefined
      ? run
      : { ...run, attempts: run.attempts.map((a) => ({ ...a, settled: true })) },
  ),
);

/** The ledger is written over whatever is there. */
export const ledgerWithoutCas: Tamper = {
  request(request) {
    if (request.verb !== "update") return request;
    const { resourceVersion: _, uid: __, ...metadata } = request.body.metadata;
    return { ...request, body: { ...request.body, metadata: metadata as ObjectMeta } };
  },
};

/** A take-over puts its attempt in the place of the earlier ones. */
export const takeOverForgets: Tamper = onLedger((ledger) =>
  eachRun(ledger, (run) =>
    run.jobUID === undefined ? { ...run, attempts: run.attempts.slice(-1) } : run,
  ),
);

/** An attempt whose answer was lost is sent once more, with no new attempt in the ledger. */
export const attemptSentTwice: Tamper = {
  fate: (fate) => (fate === "inDoubt" ? "unsent" : fate),
};

/** The ledger's own finalizer is left out. */
export const ledgerWithoutFinalizer: Tamper = {
  request(request) {
    if (request.verb !== "update") return request;
    return { ...request, body: { ...request.body, metadata: unheld(request.body.metadata) } };
  },
};

/** A ledger that was deleted goes as soon as no POST of it can arrive, whatever else it knows. */
export const deletedLedgerLetGo: Tamper = onLedger((ledger) => ledger);

/** A ledger that is handed over to a namesake loses the old one's runs. */
export const namesakeForgotten: Tamper = onLedger((ledger) => ({
  ...ledger,
  runs: ledger.runs.filter((r) => r.of === undefined),
}));

/** A process that is proven dead counts as past at once, with its requests still on their way. */
export const noRequestBound: Tamper = { impatient: true };

/** A look that meets a foreign Job settles attempts whose POST may still arrive. */
export const refusalSettlesAll: Tamper = onLedger((ledger) =>
  eachRun(ledger, (run) =>
    run.refusal === undefined
      ? run
      : { ...run, attempts: run.attempts.map((a) => ({ ...a, settled: true })) },
  ),
);

/** A fence is written over whatever is there. */
export const fenceWithoutCas: Tamper = {
  request(request) {
    if (request.verb !== "update" || request.of !== "fence") return request;
    const { resourceVersion: _, ...metadata } = request.body.metadata;
    return { ...request, body: { ...request.body, metadata: metadata as ObjectMeta } };
  },
};

/** Whoever holds a mutex counts as over. */
export const everyHolderOver: Tamper = { holderOver: () => true };

/** A holder that no ledger knows counts as over, whatever pods of it live. */
export const podsOfHolderIgnored: Tamper = {
  request(request) {
    if (request.verb !== "list" || request.of !== "podsNamed") return request;
    return { ...request, jobName: "nobody" };
  },
};

/** A run is claimed with an attempt, before it holds its mutexes. */
export const attemptBeforeMutexes: Tamper = onLedger((ledger) =>
  eachRun(ledger, ({ waiting, ...run }) =>
    waiting === undefined ? run : { ...run, attempts: [{ n: 1, by: waiting.by, settled: false }] },
  ),
);

/** Nobody is ever found to be over. */
export const noHolderOver: Tamper = { holderOver: () => false };

/** The token of a mutex begins anew with each holder. */
export const fenceTokenForgotten: Tamper = {
  request(request) {
    if (request.verb !== "update" || request.of !== "fence") return request;
    const spec = { ...request.body.spec, leaseTransitions: 1 };
    return { ...request, body: { ...request.body, spec } };
  },
};

// The rest is no safeguard against a second Job, but shows that everything else that is checked can fail.

/** The tick counts as decided, but nobody is to launch it. */
export const claimWithoutRun: Tamper = onLedger((ledger) => ({
  ...ledger,
  runs: ledger.runs.filter((r) => r.jobUID !== undefined),
}));

/** A run leaves the ledger as soon as it has started. */
export const startedRunForgotten: Tamper = onLedger((ledger) => ({
  ...ledger,
  runs: ledger.runs.filter((r) => r.jobUID === undefined),
}));

export const tokenLost: Tamper = onLedger((ledger) => ({ ...ledger, token: 1 }));

export const tokenStandsStill: Tamper = {
  request(request) {
    if (request.verb !== "create" || request.of !== "job") return request;
    const { metadata } = request.body;
    const annotations = { ...metadata.annotations, [TOKEN_ANNOTATION]: "1" };
    return { ...request, body: { ...request.body, metadata: { ...metadata, annotations } } };
  },
};

/** Nothing is ever known for certain about a POST. */
export const nothingSettled: Tamper = {
  fate: (fate) => (fate === "past" ? "inDoubt" : fate),
};

function onLedger(change: (ledger: Ledger) => Ledger): Tamper {
  return {
    request(request: Request): Request {
      if (request.verb !== "update" || request.of !== "lease") return request;
      const ledger = ledgerOf(request.body);
      if (ledger === undefined) return request;
      return { ...request, body: withLedger(request.body, change(ledger)) };
    },
  };
}

function eachRun(ledger: Ledger, change: (run: Run) => Run): Ledger {
  return { ...ledger, runs: ledger.runs.map(change) };
}

/** As the real store would have written it. */
function withLedger(lease: Lease, ledger: Ledger): Lease {
  const metadata = unheld(lease.metadata);
  return {
    ...lease,
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [LEDGER_ANNOTATION]: JSON.stringify(ledger) },
      finalizers: [...(metadata.finalizers ?? []), ...(mustStay(ledger) ? [LAUNCH_FINALIZER] : [])],
    },
  };
}

function unheld(metadata: ObjectMeta): ObjectMeta {
  const finalizers = (metadata.finalizers ?? []).filter((f) => f !== LAUNCH_FINALIZER);
  return { ...metadata, finalizers };
}
