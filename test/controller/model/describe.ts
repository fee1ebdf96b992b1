/** Moves in words, for the schedule that leads to a violation. */
import { LEDGER_ANNOTATION, ATTEMPT_ANNOTATION } from "../../../src/api/names.ts";
import type { Lease } from "../../../src/api/types.ts";
import type { Ledger, Run } from "../../../src/domain/ledger.ts";
import type { Process, Request } from "./types.ts";

const parsed = new WeakMap<Lease, Ledger>();

export function ledgerOf(lease: Lease | undefined): Ledger | undefined {
  const text = lease?.metadata.annotations?.[LEDGER_ANNOTATION];
  if (lease === undefined || text === undefined) return undefined;
  let ledger = parsed.get(lease);
  if (ledger === undefined) parsed.set(lease, (ledger = JSON.parse(text) as Ledger));
  return ledger;
}

export function describe(process: Process, request: Request): string {
  const who = process.name;
  switch (request.verb) {
    case "elect":
      return `${who} elects`;
    case "get":
      return `${who} reads the ${SAID[request.of] ?? request.of}`;
    case "list":
      return `${who} lists ${request.of}`;
    case "create":
      if (request.of === "fence") return `${who} makes the fence: ${holderIn(request.body)}`;
      return request.of === "lease"
        ? `${who} makes the ledger`
        : `${who} POSTs the Job (attempt ${request.body.metadata.annotations?.[ATTEMPT_ANNOTATION]})`;
    case "update": {
      if (request.of === "fence") return `${who} writes the fence: ${holderIn(request.body)}`;
      const known = (process.busy?.start ?? process).known.lease;
      return `${who} writes the ledger: ${changes(ledgerOf(known), ledgerOf(request.body))}`;
    }
    case "unhold":
      return `${who} drops the finalizer of ${request.uid}`;
    case "delete":
      return `${who} deletes ${request.uid}`;
  }
}

const SAID: Partial<Record<string, string>> = { lease: "ledger", rival: "rival's ledger" };

function holderIn({ spec }: Lease): string {
  const holder = spec?.holderIdentity ?? "";
  return holder === "" ? "free" : `${holder}, ${spec?.leaseTransitions}`;
}

function changes(from: Ledger | undefined, to: Ledger | undefined): string {
  if (to === undefined) return "nothing";
  const said: string[] = [];
  if (from?.owner !== to.owner) said.push("hands it over");
  const before = (run: Run): Run | undefined => from?.runs.find((r) => r.runId === run.runId);
  for (const run of to.runs) said.push(...runChanges(before(run), run));
  for (const run of from?.runs ?? []) {
    if (!to.runs.some((r) => r.runId === run.runId)) said.push(`${run.jobName} ends`);
  }
  if (to.missed !== (from?.missed ?? 0)) said.push("a tick is missed");
  return said.length === 0 ? "the same" : said.join(", ");
}

function runChanges(from: Run | undefined, to: Run): string[] {
  const said: string[] = [];
  if (from === undefined) said.push(`claims ${to.jobName} with token ${to.token}`);
  for (const attempt of to.attempts) {
    const old = from?.attempts.find((a) => a.n === attempt.n);
    if (old === undefined) said.push(`attempt ${attempt.n}`);
    else if (attempt.settled && !old.settled) said.push(`attempt ${attempt.n} settled`);
  }
  for (const old of from?.attempts ?? []) {
    if (!to.attempts.some((a) => a.n === old.n)) said.push(`attempt ${old.n} forgotten`);
  }
  if (to.jobUID !== from?.jobUID) said.push(`${to.jobUID} started`);
  if (to.refusal?.count !== from?.refusal?.count) said.push("refused");
  return said;
}
