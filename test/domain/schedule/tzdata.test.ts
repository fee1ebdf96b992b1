import { describe, expect, it } from "vitest";
import { decodeZone } from "../../../src/domain/schedule/tz-table.ts";
import { zoneFrom } from "../../../src/domain/schedule/zone.ts";
import { readPosixRule } from "../../../tools/tzdata/posix-rule.ts";
import { readTzif } from "../../../tools/tzdata/tzif.ts";

/** A TZif file of version 2 as RFC 9636 draws it; its first block is as good as empty. */
function tzif(o: { offsets: number[]; changes: [at: number, type: number][]; footer: string }) {
  const header = (times: number, types: number): Buffer => {
    const bytes = Buffer.alloc(44);
    bytes.write("TZif2");
    for (const [i, count] of [0, 0, 0, times, types, 4].entries()) {
      bytes.writeUInt32BE(count, 20 + 4 * i);
    }
    return bytes;
  };
  const instants = o.changes.map(([at]) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64BE(BigInt(at));
    return bytes;
  });
  const types = o.offsets.map((offset) => {
    const bytes = Buffer.alloc(6);
    bytes.writeInt32BE(offset);
    return bytes;
  });
  return Buffer.concat([
    header(0, 1),
    Buffer.alloc(6),
    Buffer.from("UTC\0"),
    header(o.changes.length, o.offsets.length),
    ...instants,
    Buffer.from(o.changes.map(([, type]) => type)),
    ...types,
    Buffer.from("UTC\0"),
    Buffer.from(`\n${o.footer}\n`),
  ]);
}

describe("a compiled zone", () => {
  it("is read with instants before 1901 and offsets west of Greenwich", () => {
    const bytes = tzif({
      offsets: [-17_762, -18_000, -14_400],
      changes: [
        [-2_717_650_800, 1],
        [1_173_596_400, 2],
      ],
      footer: "EST5EDT,M3.2.0,M11.1.0",
    });
    expect(readTzif(bytes)).toEqual({
      initial: -17_762,
      changes: [
        { at: -2_717_650_800, offset: -18_000 },
        { at: 1_173_596_400, offset: -14_400 },
      ],
      footer: "EST5EDT,M3.2.0,M11.1.0",
    });
  });

  it("loses changes of name only, but not the last one, from which its rule holds", () => {
    const bytes = tzif({
      offsets: [0, 3600, 3600],
      changes: [
        [100, 1],
        [200, 2],
        [300, 1],
      ],
      footer: "A-1",
    });
    expect(readTzif(bytes).changes).toEqual([
      { at: 100, offset: 3600 },
      { at: 300, offset: 3600 },
    ]);
  });

  it.each([
    ["nothing", Buffer.alloc(100)],
    ["version 1", Buffer.concat([Buffer.from("TZif"), Buffer.alloc(60)])],
  ])("is refused when it is %s", (_, bytes) => {
    expect(() => readTzif(bytes)).toThrow("not a TZif file of version 2 or newer");
  });
});

describe("the rule of a zone", () => {
  it.each([
    ["UTC0", 0],
    ["<-0930>9:30", -34_200],
    ["<+1245>-12:45", 45_900],
    ["EST+5", -18_000],
  ])("%s has one offset", (text, standard) => {
    expect(readPosixRule(text)).toEqual({ standard });
  });

  it.each([
    ["CET-1CEST,M3.5.0,M10.5.0/3", "2027-03-28T01:00:00Z 7200", "2027-10-31T01:00:00Z 3600"],
    [
      "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
      "2027-04-03T15:00:00Z 37800",
      "2027-10-02T15:30:00Z 39600",
    ],
    ["IST-1GMT0,M10.5.0,M3.5.0/1", "2027-03-28T01:00:00Z 3600", "2027-10-31T01:00:00Z 0"],
    ["<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2027-03-28T01:00:00Z -3600", "2027-10-31T01:00:00Z -7200"],
    ["EET-2EEST,M3.4.4/50,M10.4.4/50", "2027-03-27T00:00:00Z 10800", "2027-10-29T23:00:00Z 7200"],
  ])("%s changes twice a year", (text, ...want) => {
    const { standard, yearly: rule } = readPosixRule(text);
    const zone = zoneFrom("Test/Zone", { initial: standard, instants: [], offsets: [], rule });
    const first = zone.spanAt(Date.UTC(2027, 0, 15) / 1000).end;
    const second = zone.spanAt(first).end;
    const shown = [first, second].map(
      (at) => `${new Date(at * 1000).toISOString().replace(".000", "")} ${zone.spanAt(at).offset}`,
    );
    expect(shown).toEqual(want);
  });

  it.each(["", "CET", "CET-1CEST,J60,J300", "CET-1CEST,M3.5.0"])("%j cannot be read", (text) => {
    expect(() => readPosixRule(text)).toThrow(/cannot read/);
  });
});

it("a zone without a rule keeps its last offset for ever", () => {
  const zone = zoneFrom("Test/Zone", decodeZone("0 3600|1|-rs|"));
  expect(zone.spanAt(-1_001)).toMatchObject({ offset: 0, end: -1_000 });
  expect(zone.spanAt(-1_000)).toMatchObject({ offset: 3600, end: Infinity });
});
