/** The p-quantile (0..1) of values by the nearest rank; NaN of none. */
export function quantile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(p * sorted.length) - 1)] ?? Number.NaN;
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
