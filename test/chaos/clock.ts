/** A replica whose clock and the API server's are far apart takes no ticks, and says so; the others go on. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDateProxy } from "./date-proxy.ts";
import { nameFor, useWorld } from "./world.ts";

const world = useWorld();
const HOUR = 3_600_000;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lockedcron-clock-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.concurrent("a clock an hour ahead takes no tick of the future, until it is mended", async () => {
  await using lab = await world().lab();
  await using proxy = await startDateProxy(world().cluster.kubeconfigPath);
  const kubeconfig = join(folder, "behind-a-proxy.kubeconfig");
  writeFileSync(kubeconfig, proxy.kubeconfig);
  proxy.shift(-HOUR);
  const ahead = await lab.replica("ahead", { kubeconfig });
  const name = nameFor(lab.namespace, "job", ["ahead", "right"]);
  await lab.create(name);
  await lab.seen.until("its ledger", () => lab.seen.ledger(name));
  const said = await ahead.line("the clock is wrong", ({ event }) => event === "ClockSkew");
  expect(said.reason).toMatch(/is 3\d\d\d s ahead of the API server's: it takes no ticks/);
  expect(await ahead.readyz()).toContain("ahead of the API server's");
  expect(await ahead.metrics()).toMatch(/^lockedcron_clock_skew_seconds 3[56]\d\d/m);

  const right = await lab.replica("right");
  await lab.more(name, 3);
  expect(ahead.lines.filter(({ event }) => event === "Launched")).toEqual([]);
  await right.stop();
  proxy.shift(0);
  await ahead.ready();
  await lab.more(name, 2);
  expect(ahead.lines.some(({ event }) => event === "Launched")).toBe(true);
  expect(await lab.violationsAtEnd()).toEqual([]);
  expect(await ahead.stop()).toBe(0);
});
