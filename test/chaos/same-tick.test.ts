/** Several replicas go for the same ticks at the same instant: a hundred ticks, a Job each, none missing. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedWorld, type World } from "./world.ts";

const LOCKED_CRON_JOBS = 50;
const TICKS_EACH = 2;

let world: World;

beforeAll(async () => {
  world = await sharedWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

describe.concurrent.each([2, 3])("%i replicas without a head start for any", (count) => {
  it("launch a hundred ticks once each, with rising tokens", async () => {
    await using lab = await world.lab();
    const replicas = await Promise.all(
      ["a", "b", "c"]
        .slice(0, count)
        .map((name) => lab.replica(name, { flags: ["--rank-delay-ms=0"] })),
    );
    const names = Array.from({ length: LOCKED_CRON_JOBS }, (_, i) => `job-${i}`);
    await Promise.all(
      names.map((name, i) =>
        lab.create(name, {
          schedule: "@every 20s",
          concurrencyPolicy: i % 2 === 0 ? "Forbid" : "Allow",
        }),
      ),
    );
    await Promise.all(names.map((name) => lab.seen.created(name, TICKS_EACH)));
    expect(await lab.violationsAtEnd()).toEqual([]);
    for (const name of names) expect([name, lab.seen.missed(name)]).toEqual([name, 0]);
    const launched = names.flatMap((name) => lab.seen.jobs(name)).length;
    expect(launched).toBeGreaterThanOrEqual(LOCKED_CRON_JOBS * TICKS_EACH);
    // They did meet: more elections were held than ticks were launched.
    const elections = replicas.flatMap(({ lines }) => lines.filter((l) => l.event === "Elected"));
    expect(elections.length).toBeGreaterThan(launched);
  });
});
