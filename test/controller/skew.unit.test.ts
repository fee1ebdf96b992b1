import { describe, expect, it } from "vitest";
import { createSkewMeter, type SkewMeter } from "../../src/controller/skew.ts";
import { createKubeClient } from "../../src/kube/client.ts";
import { startFakeApi } from "../kube/fake-api.ts";
import { configMaps } from "../kube/support.ts";
import { manualTime, type ManualTime } from "./manual-time.ts";

const START = Date.UTC(2026, 0, 1);

function aMeter(): { meter: SkewMeter; time: ManualTime } {
  const time = manualTime(START);
  return { meter: createSkewMeter(time.clock), time };
}

/** An answer that the server made now, when its clock is so far from ours, after a round trip of this length. */
function answered({ meter, time }: ReturnType<typeof aMeter>, offMs = 0, roundTripMs = 0): void {
  const now = time.clock.monotonic();
  const date = Math.floor((time.clock.now() - offMs) / 1000) * 1000;
  meter.observe({ date, sentAt: now - roundTripMs, receivedAt: now });
}

describe("a clock", () => {
  it("is not said to be wrong before the server told the time", () => {
    expect(aMeter().meter.skewMs()).toBe(0);
  });

  it.each([0, 1, 500, 999])("that agrees is right %d ms into a second", async (ms) => {
    const rig = aMeter();
    await rig.time.pass(ms);
    answered(rig);
    await rig.time.pass(60_000);
    expect(rig.meter.skewMs()).toBe(0);
  });

  it("is off by what is proven: less what the whole second and the round trip leave open", async () => {
    const rig = aMeter();
    await rig.time.pass(250);
    answered(rig, 60_000, 300);
    // The server's clock showed 00:00:00.250 less a minute, and its header said :00, made in the last 300 ms.
    expect(rig.meter.skewMs()).toBe(60_000 + 250 - 1_000 - 300);
    answered(rig, -60_000, 300);
    expect(rig.meter.skewMs()).toBe(-60_000 + 250);
  });

  it("that is set ahead or back shows at once, and so does that it was set right", () => {
    const rig = aMeter();
    answered(rig);
    rig.time.jump(3_600_000);
    expect(rig.meter.skewMs()).toBe(3_599_000);
    rig.time.jump(-7_200_000);
    expect(rig.meter.skewMs()).toBe(-3_600_000);
    rig.time.jump(3_600_000);
    expect(rig.meter.skewMs()).toBe(0);
  });

  it("is right again when the server's was mended", () => {
    const rig = aMeter();
    answered(rig, 60_000);
    answered(rig);
    expect(rig.meter.skewMs()).toBe(0);
  });

  it("is not judged by a date that is none", () => {
    const rig = aMeter();
    rig.meter.observe({ date: Number.NaN, sentAt: 0, receivedAt: 0 });
    expect(rig.meter.skewMs()).toBe(0);
  });
});

describe("the Date headers of the API server", () => {
  const key = { namespace: "ns", name: "a" };
  const map = JSON.stringify({ metadata: { ...key, resourceVersion: "1" } });

  it.each<[what: string, status: number]>([
    ["an answer", 200],
    ["a refusal", 404],
  ])("are read from %s", async (_, status) => {
    await using api = await startFakeApi((_request, response) => {
      response.setHeader("date", new Date(START - 3_600_000).toUTCString());
      response.statusCode = status;
      response.end(map);
    });
    const { meter, time } = aMeter();
    await using client = createKubeClient({
      config: () => api.config(),
      clock: time.clock,
      onServerTime: meter.observe,
    });
    await client.get(configMaps, key).catch(() => undefined);
    expect(meter.skewMs()).toBe(3_599_000);
  });

  it("may be missing", async () => {
    await using api = await startFakeApi((_request, response) => {
      response.sendDate = false;
      response.end(map);
    });
    const { meter } = aMeter();
    await using client = createKubeClient({
      config: () => api.config(),
      onServerTime: meter.observe,
    });
    await client.get(configMaps, key);
    expect(meter.skewMs()).toBe(0);
  });
});
