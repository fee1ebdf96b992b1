/**
 * Regular expressions for decimal numbers, in the syntax that RE2 (the API server) and JavaScript (our tests)
 * read alike: literals, classes, groups, alternation, `? * + {m,n}`, `^` and `$`.
 */

/** One digit out of `digits`, e.g. [0,1,2] → `[0-2]`. */
function digitClass(digits: number[]): string {
  const sorted = [...new Set(digits)].sort((a, b) => a - b);
  if (sorted.length === 1) return String(sorted[0]);
  const first = sorted[0]!;
  const last = sorted.at(-1)!;
  const contiguous = last - first === sorted.length - 1;
  return contiguous && sorted.length > 2 ? `[${first}-${last}]` : `[${sorted.join("")}]`;
}

/** Alternation without a needless group. */
export function either(alternatives: string[]): string {
  return alternatives.length === 1 ? alternatives[0]! : `(?:${alternatives.join("|")})`;
}

/** Exactly the integers low..high (0 ≤ low ≤ high ≤ 99), without leading zeros. */
export function numberBetween(low: number, high: number): string {
  const oneDigit = low <= 9 ? [digitClass(range(low, Math.min(high, 9)))] : [];
  // Tens with the same units share one alternative: 10-19|20-29|… → [1-5][0-9].
  const tensOf = new Map<string, number[]>();
  for (let tens = Math.max(1, Math.floor(low / 10)); tens <= Math.floor(high / 10); tens++) {
    const units = range(Math.max(low - tens * 10, 0), Math.min(high - tens * 10, 9));
    const group = tensOf.get(digitClass(units)) ?? [];
    tensOf.set(digitClass(units), [...group, tens]);
  }
  const twoDigits = Array.from(tensOf, ([units, tens]) => digitClass(tens) + units);
  return either([...oneDigit, ...twoDigits]);
}

/** Exactly the integers 1..max (max given in decimal digits), without leading zeros. */
export function numberUpTo(max: string): string {
  const shorter = max.length > 1 ? [`[1-9][0-9]{0,${max.length - 2}}`] : [];
  const sameLength = [...max].flatMap((digit, i) => {
    const rest = max.length - i - 1;
    const lowest = i === 0 ? 1 : 0;
    if (Number(digit) <= lowest) return [];
    const below = digitClass(range(lowest, Number(digit) - 1));
    return [max.slice(0, i) + below + (rest > 0 ? `[0-9]{${rest}}` : "")];
  });
  return either([...shorter, ...sameLength, max]);
}

function range(low: number, high: number): number[] {
  return Array.from({ length: high - low + 1 }, (_, i) => low + i);
}
