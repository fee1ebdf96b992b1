/** Each safeguard is needed: without it the model finds a violation. And each check can fail. */
import { describe, expect, it } from "vitest";
import { explore } from "./explore.ts";
import { TOGETHER } from "./rival.ts";
import * as safeguards from "./safeguards.ts";
import { scenarios } from "./scenarios.ts";
import type { Scenario, Tamper } from "./types.ts";

const TWICE = "a second Job was made for the tick";

async function violationOf(name: string, scenario: Scenario, tamper: Tamper) {
  const { violation, states } = await explore(scenario, tamper);
  if (violation === undefined) return undefined;
  const steps = violation.schedule.map((step, i) => `  ${i + 1}. ${step}`);
  console.log(`${name}: ${violation.what} (${states} states)\n${steps.join("\n")}`);
  return violation;
}

describe("a tick runs twice without", () => {
  it.each<[safeguard: string, scenario: Scenario, tamper: Tamper]>([
    ["the Job's finalizer", scenarios.launch, safeguards.jobWithoutFinalizer],
    ["keeping it until all is settled", scenarios.launch, safeguards.finalizerDroppedEarly],
    ["compare-and-set on the ledger", scenarios.launch, safeguards.ledgerWithoutCas],
    ["the earlier attempts", scenarios.launch, safeguards.takeOverForgets],
    ["one POST per attempt", scenarios.launch, safeguards.attemptSentTwice],
    ["waiting for requests of the dead", scenarios.launch, safeguards.noRequestBound],
    ["the ledger's finalizer", scenarios.ledgerDeletedAlone, safeguards.ledgerWithoutFinalizer],
    ["the runs of a namesake", scenarios.namesakeAlone, safeguards.namesakeForgotten],
    ["doubt when a Job is refused", scenarios.foreignJobAlone, safeguards.refusalSettlesAll],
  ])(
    "%s",
    async (name, scenario, tamper) => {
      const violation = await violationOf(name, scenario, tamper);
      expect(violation?.what).toBe(TWICE);
    },
    120_000,
  );
});

describe("runs that share a mutex meet, or get a token that is too low, without", () => {
  const LOW = "the token of a mutex did not grow";
  it.each<[safeguard: string, scenario: Scenario, tamper: Tamper, says: string]>([
    [
      "asking whether its holder is over",
      scenarios.mutexAlone,
      safeguards.everyHolderOver,
      TOGETHER,
    ],
    [
      "asking for its holder's pods",
      scenarios.mutexKilledAlone,
      safeguards.podsOfHolderIgnored,
      TOGETHER,
    ],
    ["compare-and-set on the fence", scenarios.mutexAlone, safeguards.fenceWithoutCas, LOW],
    ["fences before the first attempt", scenarios.mutexAlone, safeguards.attemptBeforeMutexes, LOW],
    ["a token that the fence keeps", scenarios.mutexAlone, safeguards.fenceTokenForgotten, LOW],
  ])(
    "%s",
    async (name, scenario, tamper, says) => {
      const violation = await violationOf(name, scenario, tamper);
      expect(violation?.what).toBe(says);
    },
    120_000,
  );
});

describe("it is noticed when", () => {
  it.each<[what: string, scenario: Scenario, tamper: Tamper, says: string]>([
    [
      "a claimed tick is launched by nobody",
      scenarios.launch,
      safeguards.claimWithoutRun,
      "one process alone never decides the tick",
    ],
    [
      "a mutex is never freed for a run that died",
      scenarios.mutexAlone,
      safeguards.noHolderOver,
      "one process alone never decides the tick",
    ],
    [
      "a finalizer is never dropped",
      scenarios.launchAlone,
      safeguards.nothingSettled,
      "a finalizer or a run stays for ever",
    ],
    [
      "runs overlap though the policy is Forbid",
      scenarios.nextTickAlone,
      safeguards.startedRunForgotten,
      "two runs are active at once though the policy is Forbid",
    ],
    [
      "the fencing token goes back",
      scenarios.nextTickAlone,
      safeguards.tokenLost,
      "the fencing token went back",
    ],
    [
      "the fencing token does not grow",
      scenarios.nextTickAlone,
      safeguards.tokenStandsStill,
      "the fencing token did not grow",
    ],
  ])(
    "%s",
    async (name, scenario, tamper, says) => {
      const violation = await violationOf(name, scenario, tamper);
      expect(violation?.what).toBe(says);
    },
    120_000,
  );
});
