/** Distinct values a label may have before the rest counts as "other". */
const MAX_VALUES = 100;

/** Words, constants, codes and addresses (`0/redis-0.redis.ns.svc:6379`), but no free text. */
const PLAIN = /^[\w.:/[\]-]{1,300}$/;

/**
 * Keeps the number of time series bounded whatever a caller passes: a value that is no plain word,
 * or one value too many for its label, becomes "other". A credential in a URL holds an `@`, which
 * no plain word has.
 */
export function createLabelGuard(): (label: string, value: string) => string {
  const seen = new Map<string, Set<string>>();
  return (label, value) => {
    let values = seen.get(label);
    if (values === undefined) seen.set(label, (values = new Set()));
    if (values.has(value)) return value;
    if (values.size >= MAX_VALUES || !PLAIN.test(value)) return "other";
    values.add(value);
    return value;
  };
}
