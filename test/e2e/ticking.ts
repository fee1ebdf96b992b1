/** LockedCronJobs that tick while a test breaks things, and the account of their ticks at its end. */
import type { CreatedJob, Witness } from "../chaos/ticks.ts";
import { crdServed } from "../crd/fixture.ts";
import { account, PATIENCE_MS, workload, type Site } from "./site.ts";

/**
 * Two schedules; one pod per ten seconds is what a small machine can start beside all else. Runs of the first may overlap, so
 * it goes on when a pod is on a node that nobody reaches; those of the second may not, so it waits then.
 */
const EXPRESSIONS: Readonly<Record<string, string>> = {
  often: "@every 10s",
  minutely: "* * * * *",
};
const POLICIES: Readonly<Record<string, string>> = { often: "Allow", minutely: "Forbid" };

export interface Ticking extends AsyncDisposable {
  readonly witness: Witness;
  /** One more, whose runs may overlap; its ticks count as well. */
  add(name: string, expression: string): Promise<void>;
  /** Until a tick that is due from now on has its Job; returns that Job's name. */
  goesOn(timeoutMs?: number): Promise<string>;
  /**
   * What is wrong with the ticks so far: each must have run once, or say why not, and no rule of the protocol may be
   * broken. Empty when all is well.
   */
  faults(): Promise<string[]>;
}

export async function startTicking(site: Site): Promise<Ticking> {
  // Helm does not wait for a CRD among its templates.
  await crdServed(site.cluster);
  const witness = await site.witness();
  const expressions = new Map<string, string>();
  for (const [name, expression] of Object.entries(EXPRESSIONS)) {
    await apply(name, expression, POLICIES[name]);
  }

  async function apply(name: string, expression: string, policy = "Allow"): Promise<void> {
    const stdin = workload(name, expression, { concurrencyPolicy: policy });
    await site.cluster.kubectl(["apply", "--filename=-"], { stdin });
    expressions.set(name, expression);
  }

  async function faultsOf(name: string, expression: string): Promise<string[]> {
    const last = witness.jobs(name).at(-1);
    if (last === undefined) return [`${name} has never run`];
    await witness.until(
      `all is told of ${name} up to ${last.name}, and no claim before it is open`,
      () => isTold(name, last),
      PATIENCE_MS,
    );
    const all = account(witness, name, expression, last.tick);
    return [
      ...(all.due.length === 0 ? [`${name} was never due`] : []),
      ...(all.duplicates > 0 ? [`${name} ran ${all.duplicates} tick(s) more than once`] : []),
      ...all.unexplained.map((tick) => {
        const at = new Date(tick).toISOString();
        return `${name} ${at}: no Job, no reason; ${ledgersAround(name, tick)}`;
      }),
      ...all.strays.map((job) => `${job} is of no tick`),
    ];
  }

  /**
   * Jobs and ledgers are watched by streams of their own, either of which may be behind: a Job can be seen before the claim
   * that says why the ticks before it did not run, and a run on the ledger before its Job. And where runs may overlap, a
   * later tick can have its Job while the claim of an earlier one is still taken over.
   */
  function isTold(name: string, last: CreatedJob): boolean {
    const history = witness.history(name).map(({ ledger }) => ledger);
    const jobs = new Set(witness.jobs(name).map(({ uid }) => uid));
    const runs = history.flatMap((ledger) => ledger.runs);
    return (
      history.some(({ token }) => token >= last.token) &&
      runs.every(({ jobUID }) => jobUID === undefined || jobs.has(jobUID)) &&
      history.at(-1)?.runs.every(({ tick, jobUID }) => tick > last.tick || jobUID !== undefined) ===
        true
    );
  }

  /** The versions of the ledger in which a tick was passed: what was decided there. */
  function ledgersAround(name: string, tick: number): string {
    const history = witness.history(name).map(({ ledger }) => ledger);
    const after = history.findIndex(({ lastTick }) => lastTick >= tick);
    return JSON.stringify(history.slice(Math.max(0, after - 1), after + 3));
  }

  return {
    witness,
    add: apply,
    async goesOn(timeoutMs = PATIENCE_MS) {
      const now = Date.now();
      const job = await witness.until(
        "a tick from now on has its Job",
        () => witness.jobs("often").find(({ tick }) => tick > now),
        timeoutMs,
      );
      return job.name;
    },
    async faults() {
      const all = [...expressions].map((entry) => faultsOf(...entry));
      return [...(await Promise.all(all)).flat(), ...witness.violationsSoFar()];
    },
    [Symbol.asyncDispose]: () => witness[Symbol.asyncDispose](),
  };
}
