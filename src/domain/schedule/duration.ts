/**
 * Go's `time.ParseDuration`, because `@every` takes whatever Go takes: "1h30m", "1.5h", ".5m", "-3s", "0", "1µs".
 * Exact to the nanosecond and with the same limits (a signed 64-bit count of nanoseconds).
 */

const NANOS_PER_UNIT: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  "\u00B5s": 1_000n, // micro sign
  "\u03BCs": 1_000n, // Greek mu
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

const MAX_NANOS = 2n ** 63n;
const NANOS_PER_SECOND = 1_000_000_000n;

/** A number, then everything up to the next digit or dot as its unit. */
const TERM = /^(\d*)(?:(\.)(\d*))?([^\d.]*)/u;

export type DurationResult = { ok: true; nanos: bigint } | { ok: false; message: string };

export function parseGoDuration(text: string): DurationResult {
  const negative = text.startsWith("-");
  let rest = negative || text.startsWith("+") ? text.slice(1) : text;
  if (rest === "0") return { ok: true, nanos: 0n };
  if (rest === "") return bad("is empty");

  let total = 0n;
  while (rest !== "") {
    const term = TERM.exec(rest);
    const [matched = "", whole = "", , fraction = "", unitName = ""] = term ?? [];
    if (whole === "" && fraction === "") return bad(`has no number at ${quote(rest)}`);
    if (unitName === "") return bad(`has no unit after ${quote(matched)} (ns, us, ms, s, m or h)`);
    const unit = Object.hasOwn(NANOS_PER_UNIT, unitName) ? NANOS_PER_UNIT[unitName] : undefined;
    if (unit === undefined) {
      return bad(`has the unknown unit ${quote(unitName)} (ns, us, ms, s, m or h)`);
    }
    const nanos = BigInt(whole === "" ? 0 : whole) * unit + fractionOf(fraction, unit);
    // Go adds in 64 bits: twice the largest term wraps round to nothing before it is checked.
    total = BigInt.asUintN(64, total + nanos);
    if (nanos > MAX_NANOS || total > MAX_NANOS) return bad("is longer than about 292 years");
    rest = rest.slice(matched.length);
  }
  if (negative) return { ok: true, nanos: -total };
  if (total === MAX_NANOS) return bad("is longer than about 292 years");
  return { ok: true, nanos: total };
}

/** Whole seconds of the delay robfig/cron makes of a duration: sub-second parts are cut off, the least is one second. */
export function delaySeconds(nanos: bigint): number {
  return nanos < NANOS_PER_SECOND ? 1 : Number(nanos / NANOS_PER_SECOND);
}

/** Go multiplies the fraction in a float64 and truncates; digits past what an int64 holds are ignored. */
function fractionOf(digits: string, unit: bigint): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    const longer = value * 10n + BigInt(digit);
    if (value > (MAX_NANOS - 1n) / 10n || longer > MAX_NANOS) break;
    value = longer;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (Number(unit) / scale)));
}

function bad(why: string): DurationResult {
  return { ok: false, message: why };
}

function quote(text: string): string {
  return JSON.stringify(text.length > 20 ? `${text.slice(0, 20)}…` : text);
}
