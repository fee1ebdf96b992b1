/** Mulberry32: a small generator whose runs can be repeated by their seed. */
export interface Dice {
  /** in [0, 1) */
  readonly random: () => number;
  /** a whole number in [0, below) */
  readonly below: (below: number) => number;
  readonly between: (from: number, to: number) => number;
  readonly pick: <T>(from: readonly T[]) => T;
}

export function dice(seed: number): Dice {
  let state = seed;
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number) => Math.floor(random() * n);
  return {
    random,
    below,
    between: (from, to) => from + random() * (to - from),
    pick: (from) => from[below(from.length)]!,
  };
}
