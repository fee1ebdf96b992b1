/** A replica whose watches stand still while its calls go through: it decides by what was, the ledger by what is. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LogLine, Replica } from "../harness/replica.ts";
import { FINISHES_AT_ONCE, useWorld, type Lab } from "./world.ts";
import { startWatchProxy, type WatchProxy } from "./watch-proxy.ts";

const world = useWorld();
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lockedcron-stale-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

/** Two replicas, none with a head start: the one behind the proxy goes for every tick that it believes in. */
async function stage(lab: Lab, proxy: WatchProxy): Promise<Record<"stale" | "other", Replica>> {
  const { adminKubeconfig, server } = world().cluster;
  const kubeconfig = join(folder, `${lab.namespace}.kubeconfig`);
  const through = adminKubeconfig.replace(server, `https://127.0.0.1:${proxy.port}`);
  expect(through).not.toBe(adminKubeconfig);
  writeFileSync(kubeconfig, through);
  const flags = ["--rank-delay-ms=0"];
  const [stale, other] = await Promise.all([
    lab.replica("stale", { flags, kubeconfig }),
    lab.replica("other", { flags }),
  ]);
  return { stale, other };
}

const conflicts = (replica: Replica): number =>
  replica.lines.filter(({ outcome }) => outcome === "somebody else was first").length;

/** It has not heard of what was made meanwhile; then it does. */
async function seesAgain(lab: Lab, o: { stale: Replica; proxy: WatchProxy }): Promise<void> {
  const isOfFresh = ({ key }: LogLine): boolean => key === lab.key("fresh");
  expect(o.stale.lines.filter(isOfFresh)).toEqual([]);
  o.proxy.release();
  await o.stale.line("sees again", isOfFresh);
}

describe.concurrent("an old cache", () => {
  it("makes nobody launch what was launched, with Jobs that vanish when they are done", async () => {
    await using lab = await world().lab();
    await using proxy = await startWatchProxy(world().cluster.server);
    const { stale, other } = await stage(lab, proxy);
    const name = "job";
    await lab.create(name, { job: { ...FINISHES_AT_ONCE, ttlSecondsAfterFinished: 0 } });
    await lab.more(name, 2);
    proxy.holdWatches();
    const before = conflicts(stale);
    await lab.create("fresh");
    await lab.seen.until("it goes for ticks that are gone", () => conflicts(stale) > before);
    await Promise.all([lab.more(name, 3), lab.more("fresh", 3)]);
    await seesAgain(lab, { stale, proxy });
    await lab.more(name, 2);
    expect(await lab.violationsAtEnd()).toEqual([]);
    expect([await stale.stop(), await other.stop()]).toEqual([0, 0]);
  });

  it("does not know of a LockedCronJob that was deleted and made anew", async () => {
    await using lab = await world().lab();
    await using proxy = await startWatchProxy(world().cluster.server);
    const { stale, other } = await stage(lab, proxy);
    const name = "job";
    const old = await lab.create(name);
    await lab.more(name, 2);
    proxy.holdWatches();
    await lab.create("fresh");
    await lab.remove(name);
    const now = await lab.create(name, { schedule: "@every 2s" });
    const ofNew = () => lab.seen.jobs(name).filter(({ owner }) => owner === now.metadata.uid);
    await lab.seen.until("ticks of the new one", () => ofNew().length >= 3);
    await seesAgain(lab, { stale, proxy });
    await lab.more(name, 2);
    expect(await lab.violationsAtEnd()).toEqual([]);
    for (const { owner } of lab.seen.jobs(name)) {
      expect([old.metadata.uid, now.metadata.uid]).toContain(owner);
    }
    expect([await stale.stop(), await other.stop()]).toEqual([0, 0]);
  });
});
