import { createHash } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import type * as Debts from "../../../src/lock/node/debts.ts";
import type * as Facts from "../../../src/lock/node/facts.ts";
import type * as Scripts from "../../../src/lock/scripts.ts";
import type * as Validity from "../../../src/lock/validity.ts";
import { redisBed } from "../fixture.ts";
import { runHistory, type RunOptions } from "./run.ts";

const bed = redisBed(5);
const LEASE_MS = 500;
/** So many runs may pass before a broken rule has to show; most show in the first. */
const SEEDS = Array.from({ length: 20 }, (_, i) => i + 1);
const SEARCH_TIMEOUT_MS = 300_000;

/** One more try with another seed never hides a violation: the first run with one ends the search. */
async function search(
  options: Partial<RunOptions> & Pick<RunOptions, "faults">,
  seeds: readonly number[],
) {
  const { createQuorumLock } = await import("../../../src/lock/index.ts");
  for (const seed of seeds) {
    const result = await runHistory({
      servers: bed.servers,
      createQuorumLock,
      seed,
      leaseMs: LEASE_MS,
      durationMs: 7_000,
      stopEarly: true,
      ...options,
    });
    if (result.violations.length > 0 || result.residue.length > 0) return result;
  }
  return { violations: [], residue: [] };
}

/** The checks of history.test.ts can fail: with one rule taken out, each finds what the rule is for. */
describe("with a rule taken out", { timeout: SEARCH_TIMEOUT_MS }, () => {
  afterEach(() => {
    vi.doUnmock("../../../src/lock/validity.ts");
    vi.doUnmock("../../../src/lock/node/debts.ts");
    vi.doUnmock("../../../src/lock/scripts.ts");
    vi.doUnmock("../../../src/lock/node/facts.ts");
    vi.resetModules();
  });

  it("R3: validity counted from the answer, not from the question", async () => {
    vi.resetModules();
    vi.doMock("../../../src/lock/validity.ts", async (original) => {
      const real = await original<typeof Validity>();
      const grantFrom: typeof Validity.grantFrom = (entry, _, clock) =>
        real.grantFrom(entry, real.stampOf(clock), clock);
      return { ...real, grantFrom };
    });
    const { violations } = await search({ faults: ["delay"] }, SEEDS);
    expect(violations[0]).toMatch(/client \d and client \d hold/);
  });

  it("R4: votes of failed attempts are not taken back", async () => {
    vi.resetModules();
    vi.doMock("../../../src/lock/node/debts.ts", async (original) => {
      const real = await original<typeof Debts>();
      const createDebts: typeof Debts.createDebts = (send) => {
        const debts = real.createDebts(send);
        return {
          ...debts,
          settle: (release, answered) => {
            if (answered !== undefined) debts.settle(release, answered);
          },
        };
      };
      return { ...real, createDebts };
    });
    const options = { faults: ["cut", "lossy"], leaseMs: 30_000, durationMs: 4_000 } as const;
    const { residue } = await search(options, SEEDS);
    expect(residue.length).toBeGreaterThan(0);
  });

  it("R5: a renewal counts nodes where nothing was found, and sets it there", async () => {
    vi.resetModules();
    vi.doMock("../../../src/lock/scripts.ts", async (original) => {
      const real = await original<typeof Scripts>();
      const source = real.scripts.extend.source.replace(
        "out[i] = 0",
        "out[i] = redis.call('SET', key, value, 'PX', lease) and 1",
      );
      const sha = createHash("sha1").update(source).digest("hex");
      return { ...real, scripts: { ...real.scripts, extend: { name: "extend", source, sha } } };
    });
    const { violations } = await search({ faults: ["pause", "cut"] }, SEEDS);
    expect(violations[0]).toMatch(/renewed what|hold/);
  });

  it("R7: a node that restarted empty votes at once", async () => {
    vi.resetModules();
    vi.doMock("../../../src/lock/node/facts.ts", async (original) => ({
      ...(await original<typeof Facts>()),
      quarantineOf: () => 0,
    }));
    const { violations } = await search({ faults: ["bareMajorityThenWipe"] }, SEEDS);
    expect(violations[0]).toMatch(/client \d and client \d hold/);
  });
});
