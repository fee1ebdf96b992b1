import { describe, expect, it } from "vitest";
import {
  clockOffset,
  concernOf,
  incarnationOf,
  parseInfo,
  quarantineOf,
  unsafety,
} from "../../src/lock/node/facts.ts";

const INFO = {
  redis_version: "7.0.15",
  run_id: "aaa",
  uptime_in_seconds: "5",
  loading: "0",
  role: "master",
  cluster_enabled: "0",
  master_replid: "bbb",
  second_repl_offset: "-1",
  used_memory: "1000",
  maxmemory: "0",
  maxmemory_policy: "noeviction",
  used_cpu_user: "1.5",
  used_cpu_sys: "0.5",
  connected_slaves: "2",
};
const text = (changes: Partial<Record<keyof typeof INFO, string>> = {}) =>
  ["# Server", ...Object.entries({ ...INFO, ...changes }).map(([k, v]) => `${k}:${v}`)].join(
    "\r\n",
  );
const facts = (changes: Partial<Record<keyof typeof INFO, string>> = {}) =>
  parseInfo(text(changes));

describe("INFO", () => {
  it("is read into facts", () => {
    expect(facts()).toMatchObject({
      runId: "aaa",
      uptimeSeconds: 5,
      cpuSeconds: 2,
      promoted: false,
    });
  });

  it.each([
    ["of a loading server", { loading: "1" }, "LOADING"],
    ["of a replica", { role: "slave" }, "READONLY"],
    ["of a cluster node", { cluster_enabled: "1" }, "CLUSTER"],
    ["of something else", { run_id: "" }, "PROTOCOL"],
  ])("%s is refused: %s", (_, changes, code) => {
    expect(() => facts(changes)).toThrow(expect.objectContaining({ code }));
  });
});

describe("quarantine", () => {
  const LEASE = 30_000;
  const known = incarnationOf(facts(), "m");

  it.each([
    ["the same process again", facts(), known, 0],
    ["restarted under our eyes", facts({ run_id: "new" }), known, LEASE],
    [
      "replaced by a process that is up for long",
      facts({ run_id: "new", uptime_in_seconds: "9999" }),
      known,
      LEASE,
    ],

    ["young at first sight", facts(), undefined, LEASE - 4_000],
    ["old at first sight", facts({ uptime_in_seconds: "31" }), undefined, 0],
    [
      "a promoted replica at first sight",
      facts({ uptime_in_seconds: "31", second_repl_offset: "77" }),
      undefined,
      LEASE,
    ],
  ])("of a node %s", (_, seen, before, ms) => {
    expect(quarantineOf(seen, incarnationOf(seen, "m"), before, LEASE)).toBe(ms);
  });
});

it("other data in the same process count as another incarnation", () => {
  const [before, now] = ["m1", "m2"].map((marker) => incarnationOf(facts(), marker));
  expect(quarantineOf(facts(), now!, before, 1_000)).toBe(1_000);
});

describe("safety", () => {
  it.each([
    ["100", "allkeys-lru", "EVICTION"],
    ["100", "volatile-ttl", "EVICTION"],
    ["100", "noeviction", undefined],
    ["0", "allkeys-lru", undefined],
  ])("with maxmemory %s and %s: %s", (maxmemory, policy, reason) => {
    expect(unsafety(facts({ maxmemory, maxmemory_policy: policy }))?.reason).toBe(reason);
  });
});

it("the clock offset is measured against the middle of the round trip", () => {
  expect(clockOffset(["1000", "500000"], 1_000_010, 20)).toBe(500);
  expect(clockOffset("garbage", 0, 0)).toBeUndefined();
  expect(clockOffset(["1000", "500000"], 1_000_010, 2_000)).toBeUndefined();
});

it.each([
  [undefined, null],
  [1_000, null],
  [-1_000, null],
  [1_001, /ahead of ours/],
  [-1_001, /behind ours/],
])("a clock that is %s ms off: %s", (clockOffsetMs, message) => {
  const concern = concernOf({ ...facts(), ...(clockOffsetMs !== undefined && { clockOffsetMs }) });
  if (message === null) expect(concern).toBeNull();
  else expect(concern).toMatchObject({ reason: "CLOCK", message: expect.stringMatching(message) });
});
