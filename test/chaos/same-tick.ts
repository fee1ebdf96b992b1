/** Several replicas go for the same ticks at the same instant: a hundred ticks, a Job each, none missing. */
import { describe, expect, it } from "vitest";
import { freePort } from "../redis/server.ts";
import { useWorld } from "./world.ts";

const TICKS_EACH = 2;
/** Longer than the busiest machine takes for one tick of all: a tick that is late is launched, until the next is due. */
const schedule = "@every 20s";
const flags = ["--rank-delay-ms=0"];

const world = useWorld();

describe.concurrent("without a head start for any", () => {
  it.each([
    ["two replicas", 2, 25, true],
    ["three replicas", 3, 25, true],
    // Nobody is elected: only the compare-and-set is left.
    ["three replicas without Redis", 3, 10, false],
  ] as const)(
    "%s launch each tick once, none is missing, tokens rise",
    async (_, count, n, elect) => {
      await using lab = await world().lab();
      const nowhere = await Promise.all([freePort(), freePort(), freePort()]);
      const redis = nowhere.map((port) => `redis://127.0.0.1:${port}`);
      const replicas = await Promise.all(
        ["a", "b", "c"]
          .slice(0, count)
          .map((name) => lab.replica(name, { flags, ...(elect ? {} : { redis }) })),
      );
      const names = Array.from({ length: n }, (_, i) => `job-${i}`);
      await Promise.all(
        names.map((name, i) =>
          lab.create(name, { schedule, concurrencyPolicy: i % 2 === 0 ? "Forbid" : "Allow" }),
        ),
      );
      await Promise.all(names.map((name) => lab.seen.created(name, TICKS_EACH)));
      expect(await lab.violationsAtEnd()).toEqual([]);
      for (const name of names) expect([name, lab.seen.missed(name)]).toEqual([name, 0]);
      const launched = names.flatMap((name) => lab.seen.jobs(name)).length;
      expect(launched).toBeGreaterThanOrEqual(n * TICKS_EACH);
      // They did meet: more elections were held than ticks were launched.
      const elections = replicas.flatMap(({ lines }) => lines.filter((l) => l.event === "Elected"));
      expect(elections.length).toBeGreaterThan(launched);
    },
  );
});
