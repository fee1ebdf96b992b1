/** Restricted Damerau-Levenshtein distance: insert, delete, replace or swap neighbours. */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const cell = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(cell(i - 1, j) + 1, cell(i, j - 1) + 1, cell(i - 1, j - 1) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, cell(i - 2, j - 2) + 1);
      }
      row.push(best);
    }
  }
  return cell(a.length, b.length);
}

/** The one of `names` that was meant, if any is near enough. */
export function closest(wrong: string, names: Iterable<string>): string | undefined {
  const ranked = [...names]
    .map((name) => ({ name, far: distance(wrong, name) }))
    .toSorted((a, b) => a.far - b.far);
  const best = ranked[0];
  return best !== undefined && best.far <= 2 ? best.name : undefined;
}
