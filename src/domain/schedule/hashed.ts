/**
 * `H` in a field: a number that the hash of a name picks, so that a thousand schedules written the same way do not fire
 * at the same instant, and each of them always does at its own. The syntax is that of Jenkins:
 *
 *   H          any number of the field (days of the month: 1 to 28, which every month has)
 *   H(a-b)     any of a to b
 *   H/n        every n from a hashed start: `H/15` of minutes may be 7,22,37,52
 *   H(a-b)/n   the same within a to b
 *
 * What comes out is an ordinary expression: it is shown in the status and read like any other.
 */
import { hash32 } from "../hash.ts";
import {
  layoutOf,
  readNumber,
  readNumberOrName,
  refusal,
  Refused,
  splitFields,
  type Bounds,
  type SecondsField,
} from "./expression.ts";

const HASHED = /(?:^|[^A-Za-z0-9])H/;
const ITEM = /^H(?:\(([^()-]*)-([^()-]*)\))?(?:\/([^/]*))?$/;
const EVERY_MONTH_HAS = 28;

export type ResolveResult = { ok: true; expression: string } | { ok: false; message: string };

/** True when the hash of a name decides some of its fields. */
export function isHashed(expression: string): boolean {
  return !expression.startsWith("@") && HASHED.test(expression);
}

/**
 * The expression with numbers in place of each `H`; itself when it has none.
 *
 * @param seed what is hashed, such as `namespace/name`; each field has a hash of its own
 */
export function resolveHashed(
  expression: string,
  seed: string | undefined,
  withSeconds: SecondsField,
): ResolveResult {
  if (!isHashed(expression)) return { ok: true, expression };
  if (seed === undefined) {
    return {
      ok: false,
      message: "H is picked by the hash of a name, and no name or seed is given",
    };
  }
  const parts = splitFields(expression);
  const layout = layoutOf(parts, withSeconds);
  try {
    const fields = parts.map((field, i) => {
      const bounds = layout[i];
      return bounds === undefined ? field : resolveField(field, bounds, seed);
    });
    return { ok: true, expression: fields.join(" ") };
  } catch (error) {
    if (error instanceof Refused) return { ok: false, message: error.message };
    throw error;
  }
}

function resolveField(field: string, bounds: Bounds, seed: string): string {
  const hash = hash32(`${seed}|${bounds.label}`);
  return field
    .split(",")
    .map((item) => (item.startsWith("H") ? resolveItem(item, bounds, hash) : item))
    .join(",");
}

function resolveItem(item: string, bounds: Bounds, hash: number): string {
  const [matched, low, high, stepText] = ITEM.exec(item) ?? [];
  if (matched === undefined) {
    throw refusal("H goes as H, H/step, H(from-to) or H(from-to)/step", item, bounds);
  }
  const given = low !== undefined && high !== undefined;
  const from = given ? readNumberOrName(low, item, bounds) : bounds.min;
  const to = given ? readNumberOrName(high, item, bounds) : lastOf(bounds, stepText);
  if (from < bounds.min || to > bounds.max || from > to) {
    throw refusal(`${from}-${to} is no range within the field`, item, bounds);
  }
  const size = to - from + 1;
  if (stepText === undefined) return String(from + (hash % size));
  const step = readNumber(stepText, item, bounds);
  if (step < 1 || step > size) {
    throw refusal(`the step must be 1 to ${size}, the size of its range`, item, bounds);
  }
  return `${from + (hash % step)}-${to}/${step}`;
}

function lastOf(bounds: Bounds, stepText: string | undefined): number {
  return bounds.label === "day of month" && stepText === undefined ? EVERY_MONTH_HAS : bounds.max;
}
