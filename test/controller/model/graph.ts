/** The states of an exploration, how each was first reached, and the fair moves between them. */
import type { World } from "./types.ts";

interface State {
  parent: number;
  label: string;
  depth: number;
  /** The stored state is the mirror image of its text. */
  mirrored: boolean;
  decided: boolean;
  clean: boolean;
  /** A move from here was left out because of a bound. */
  cut: boolean;
  /** Places whose process is alive, as bits. */
  alive: number;
}

/** In place of a process, for a move that is made by none. */
export const NOBODY = 2;
/** A move: from, to, by whom and whether places are swapped in the state it leads to. */
const FIELDS = 4;

export interface Graph {
  size(): number;
  depth(): number;
  add(state: Pick<State, "parent" | "label" | "mirrored" | "decided" | "clean">, w: World): number;
  cut(state: number): void;
  /** @param mirrored of the state as the move made it; the stored one may be its mirror image */
  fairMove(from: number, to: number, by: number, mirrored: boolean): void;
  scheduleTo(state: number): string[];
  /** A state from which, by fair moves alone, nothing good can be reached any more. */
  dead(): { what: string; state: number } | undefined;
}

export function createGraph(): Graph {
  const states: State[] = [];
  let moves = new Int32Array(1024 * FIELDS);
  let used = 0;

  /** Every process that is left alone, with the other paused for ever, still gets every due tick decided (G2). */
  function lostTick(): number {
    const good = new Uint8Array(states.length * 2);
    states.forEach((s, n) => {
      for (const place of [0, 1]) {
        if (s.decided || s.cut || (s.alive & (1 << place)) === 0) good[n * 2 + place] = 1;
      }
    });
    backwards(good, (m, reach) => {
      const [from = 0, to = 0, by = 0, swapped = 0] = moves.subarray(m, m + FIELDS);
      for (let place = 0; place < 2; place++) {
        if (by === NOBODY || by === place) reach(from * 2 + place, to * 2 + (place ^ swapped));
      }
    });
    return good.indexOf(0) >> 1;
  }

  /** As soon as all goes well, every finalizer goes. */
  function heldForEver(): number {
    const good = Uint8Array.from(states, (s) => Number(s.clean || s.cut || s.alive === 0));
    backwards(good, (m, reach) => reach(moves[m] ?? 0, moves[m + 1] ?? 0));
    return good.indexOf(0);
  }

  /** Marks everything from which something good can be reached. */
  function backwards(
    good: Uint8Array,
    each: (move: number, reach: (from: number, to: number) => void) => void,
  ): void {
    let changed = true;
    const reach = (from: number, to: number): void => {
      if (good[to] !== 1 || good[from] === 1) return;
      good[from] = 1;
      changed = true;
    };
    // Against the order of discovery nearly everything is marked in the first pass.
    while (changed) {
      changed = false;
      for (let m = used - FIELDS; m >= 0; m -= FIELDS) each(m, reach);
    }
  }

  return {
    size: () => states.length,
    depth: () => states.at(-1)?.depth ?? 0,
    add(state, { processes }) {
      const alive = processes.reduce((bits, p, i) => (p.dead ? bits : bits | (1 << i)), 0);
      const depth = (states[state.parent]?.depth ?? -1) + 1;
      return states.push({ ...state, depth, alive, cut: false }) - 1;
    },
    cut(state) {
      (states[state] as State).cut = true;
    },
    fairMove(from, to, by, mirrored) {
      if (used === moves.length) {
        const wider = new Int32Array(used * 2);
        wider.set(moves);
        moves = wider;
      }
      moves.set([from, to, by, Number(mirrored !== states[to]?.mirrored)], used);
      used += FIELDS;
    },
    scheduleTo(state) {
      const labels: string[] = [];
      for (let n = state; n > 0; n = states[n]?.parent ?? 0) labels.push(states[n]?.label ?? "");
      return labels.reverse();
    },
    dead() {
      const lost = lostTick();
      if (lost >= 0) return { what: "one process alone never decides the tick", state: lost };
      const held = heldForEver();
      return held < 0 ? undefined : { what: "a finalizer or a run stays for ever", state: held };
    },
  };
}
