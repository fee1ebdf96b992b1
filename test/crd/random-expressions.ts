/** Random schedules near the border between valid and invalid, the same ones for the same seed. */
export function* randomExpressions(options: { seed: number; count: number }): Generator<string> {
  const random = mulberry32(options.seed);
  const below = (n: number): number => Math.floor(random() * n);
  const pick = <T>(...choices: T[]): T => choices[below(choices.length)]!;
  const oneIn = (n: number): boolean => below(n) === 0;

  const number = (field: number): string => {
    const names = NAMES[field];
    if (names && oneIn(3)) return names[below(names.length)]!;
    // One beyond the bounds, too.
    return pick("", "", "", "", "", "0", "+", "00") + below([61, 25, 33, 14, 8][field]!);
  };
  const range = (field: number): string => {
    const ends = [number(field), number(field)];
    // Mostly ascending, else hardly any would be valid.
    if (!oneIn(4)) ends.sort((a, b) => Number(a) - Number(b));
    return ends.join("-");
  };
  const item = (field: number): string => {
    const base = pick(
      () => pick("*", "?"),
      () => pick("*", "?"),
      () => number(field),
      () => number(field),
      () => range(field),
      () => (oneIn(12) ? pick(...ODD_ITEMS) : number(field)),
      () => (oneIn(6) ? pick("H", "H", `H(${range(field)})`, "H(", "HH") : number(field)),
    )();
    return oneIn(8) ? `${base}/${pick(...STEPS)}` : base;
  };
  const fieldOf = (field: number): string => {
    if (oneIn(200)) return ",";
    const items = Array.from({ length: 1 + below(3) }, () => item(field)).join(
      oneIn(9) ? ",," : ",",
    );
    return (oneIn(20) ? "," : "") + items + (oneIn(20) ? "," : "");
  };
  const cron = (): string => {
    const length = oneIn(10) ? 4 + below(4) : 5;
    const fields = Array.from({ length }, (_, i) => fieldOf(Math.min(i, 4)));
    if (length === 6) fields.unshift(fieldOf(0), ...fields.splice(0, 5).slice(0, 4));
    const text = fields.join(pick(" ", " ", " ", "  ", ...BLANKS));
    return (oneIn(20) ? " " : "") + text + (oneIn(20) ? pick(" ", "\n") : "");
  };
  const duration = (): string => {
    const terms = Array.from({ length: below(4) }, () => pick(...AMOUNTS) + pick(...UNITS));
    return pick("", "", "", "-", "+") + terms.join("") + (oneIn(20) ? "0" : "");
  };
  const mutate = (text: string): string => {
    const runes = Array.from(text);
    for (let n = 1 + below(2); n > 0; n--) {
      const at = below(runes.length + 1);
      const removed = below(2);
      runes.splice(at, removed, ...(removed === 0 || oneIn(2) ? [pick(...NOISE)] : []));
    }
    return runes.join("");
  };

  for (let n = 0; n < options.count; n++) {
    const expression = pick(
      cron,
      cron,
      cron,
      cron,
      cron,
      cron,
      () => `@every ${duration()}`,
      () => pick(...MACROS),
    )();
    yield oneIn(4) ? mutate(expression) : expression;
  }
}

const MONTHS = ["jan", "Feb", "MAR", "apr", "mAy", "jun", "JUL", "aug", "sep", "oct", "nov", "dec"];
const DAYS = ["sun", "Mon", "TUE", "wed", "thu", "fri", "SAT", "FR\u0130"];
const NAMES = [undefined, undefined, undefined, MONTHS, DAYS];
const ODD_ITEMS = [
  "*-",
  "?-",
  "*-x",
  "*-1-2",
  "-",
  "x",
  "",
  "*5",
  "1-2-3",
  "L",
  "W",
  "1#2",
  "*-\u00e9",
  "H",
];
const STEPS = [
  ..."1 2 5 10 0 00 +3 007 -1 x 1/2".split(" "),
  "",
  "9223372036854775807",
  "9223372036854775808",
  "9223372036854775799",
  "99999999999999999999",
  "000000000000000000000000000001",
];
const BLANKS = ["\t", "\u00a0", "\v", " \u2003", "\u200b", "\u0085", "\u3000", "\ufeff"];
const MACROS = [
  ..."@yearly @annually @monthly @weekly @daily @midnight @hourly @reboot @Daily @ @every".split(
    " ",
  ),
  " @daily",
  "@daily ",
  "@every  1h",
];
const AMOUNTS = [
  ..."1 10 90 0 1.5 .5 5. . 007 2562047 2562048 153722867 9223372036 9223372037 99999999999".split(
    " ",
  ),
  "9223372036854775807",
  "9223372036854775808",
];
const UNITS = ["h", "m", "s", "ms", "us", "\u00b5s", "\u03bcs", "ns", "h", "m", "s", "d", ""];
const NOISE = Array.from("0123456789*?/-,+@ \tTZ=xhms.ij\u00a0\u2003\n\u0085\u0130\u{1f552}");

/** A small generator of good enough randomness, by Tommy Ettinger (public domain). */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
