/**
 * Figures of the calendar: `node bench/schedule.ts`. Budget (design): `next` below 5 µs median for common schedules,
 * 10,000 parsed schedules within 60 MB.
 */
import {
  parseSchedule,
  parseSpec,
  type Schedule,
  type ScheduleSpec,
} from "../src/domain/schedule/index.ts";
import { tzdbNames } from "../src/domain/schedule/tz-table.ts";
import { loadZone } from "../src/domain/schedule/zone.ts";

const START = Date.UTC(2026, 0, 1);
const DAY = 86_400_000;
const MEGABYTE = 1024 * 1024;

const COMMON: readonly [expression: string, timeZone: string][] = [
  ["* * * * *", "UTC"],
  ["*/5 * * * *", "Europe/Berlin"],
  ["0 * * * *", "America/New_York"],
  ["30 2 * * *", "Europe/Berlin"],
  ["0 9 * * 1-5", "America/Los_Angeles"],
  ["*/15 9-17 * * 1-5", "Asia/Kolkata"],
  ["0 0 1 * *", "Australia/Sydney"],
  ["0 0 1 1 *", "America/Sao_Paulo"],
  ["0 12 29 2 *", "Europe/London"],
  ["0 0 31 2 *", "Europe/London"],
  ["@every 10s", "UTC"],
];

const SPECS: Readonly<Record<string, ScheduleSpec>> = {
  "WallClock 30 2 * * * Europe/Berlin": {
    schedule: "30 2 * * *",
    timeZone: "Europe/Berlin",
    dstPolicy: "WallClock",
  },
  "RunOnce 30 2 * * * Europe/Berlin": {
    schedule: "30 2 * * *",
    timeZone: "Europe/Berlin",
    dstPolicy: "RunOnce",
  },
  "H/15 9-17 * * 1-5 America/New_York": {
    schedule: "H/15 9-17 * * 1-5",
    timeZone: "America/New_York",
  },
  "*/10 * * * * *": { schedule: "*/10 * * * * *" },
  "four schedules": {
    schedules: ["0 9 * * *", "0 12 * * 1-5", "30 18 1 * *", "H 3 * * 6"].map((schedule) => ({
      schedule,
      timeZone: "Europe/London",
    })),
  },
};

function must(expression: string, timeZone: string, seconds = false): Schedule {
  const parsed = parseSchedule(expression, { timeZone, seconds });
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.schedule;
}

function percentile(sorted: Float64Array, p: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? NaN;
}

/** Each sample is the mean of a batch: one call is shorter than the clock's grain. */
function measure(call: (i: number) => unknown, samples = 2_000, batch = 50): [number, number] {
  for (let i = 0; i < Math.min(5_000, samples * batch); i++) call(i);
  const micros = new Float64Array(samples);
  for (let s = 0; s < samples; s++) {
    const begin = performance.now();
    for (let i = 0; i < batch; i++) call(s * batch + i);
    micros[s] = ((performance.now() - begin) * 1000) / batch;
  }
  micros.sort();
  return [percentile(micros, 0.5), percentile(micros, 0.99)];
}

function row(name: string, ...columns: string[]): void {
  console.log([name.padEnd(46), ...columns.map((column) => column.padStart(12))].join(" "));
}

const micro = (value: number): string => `${value.toFixed(2)} µs`;

row("next", "p50", "p99");
for (const [expression, timeZone] of COMMON) {
  const schedule = must(expression, timeZone);
  // Instants all over four years, so that clock changes get their share.
  const figures = measure((i) => schedule.next(START + ((i * 7_654_321_987) % (4 * 365 * DAY))));
  row(`  ${expression} ${timeZone}`, ...figures.map(micro));
}

row("\nnext of what only a spec can say", "p50", "p99");
for (const [name, spec] of Object.entries(SPECS)) {
  const parsed = parseSpec(spec, "team/report");
  if (!parsed.ok) throw new Error(parsed.message);
  const { schedule } = parsed;
  const figures = measure((i) => schedule.next(START + ((i * 7_654_321_987) % (4 * 365 * DAY))));
  row(`  ${name}`, ...figures.map(micro));
}

row("\nlastFire / countFires over ten years", "lastFire", "countFires");
for (const [expression, timeZone, seconds] of [
  ["* * * * *", "Europe/Berlin", false],
  ["*/15 9-17 * * 1-5", "America/New_York", false],
  ["* * * * * *", "Europe/Berlin", true],
] as const) {
  const schedule = must(expression, timeZone, seconds);
  const [last] = measure((i) => schedule.lastFire(START, START + 3650 * DAY + i), 5, 1);
  const [count] = measure((i) => schedule.countFires(START, START + 3650 * DAY + i), 5, 1);
  row(`  ${expression} ${timeZone}`, micro(last), micro(count));
}

function heapAfterCollection(): number {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return globalThis.gc === undefined ? rss : heapUsed;
}

const names = tzdbNames();
const before = heapAfterCollection();
const parseBegin = performance.now();
const kept = Array.from({ length: 10_000 }, (_, i) =>
  must(`${i % 60} ${i % 24} ${(i % 28) + 1} * ${i % 7}`, names[i % names.length] ?? "UTC"),
);
const parsed = performance.now() - parseBegin;
const parsedBytes = heapAfterCollection() - before;
const tablesBegin = performance.now();
for (const schedule of kept) {
  schedule.next(START);
  schedule.clockChanges(START);
}
const tables = performance.now() - tablesBegin;
const usedBytes = heapAfterCollection() - before;
const kind = globalThis.gc === undefined ? "RSS (--expose-gc gives heap)" : "heap";
row(`\n10,000 schedules in ${names.length} zones`, "time", kind);
row("  parsed", `${parsed.toFixed(0)} ms`, `${(parsedBytes / MEGABYTE).toFixed(1)} MB`);
row(
  "  after next(), clockChanges() of each",
  `${tables.toFixed(0)} ms`,
  `${(usedBytes / MEGABYTE).toFixed(1)} MB`,
);

const zone = loadZone("Europe/Berlin");
if (zone.ok) {
  const [lookup] = measure((i) => zone.zone.spanAt(START / 1000 + (i % 100_000) * 997));
  row("offset of an instant", micro(lookup));
}
