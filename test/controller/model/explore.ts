/**
 * Breadth first through every state that a scenario can reach, so that the first violation found is one of the shortest.
 * Safety is judged in each state; liveness afterwards, on the graph: from every state something good must still be within
 * reach of fair moves alone.
 */
import { begin } from "./begin.ts";
import { createIdentities, type Identities } from "./identity.ts";
import { isClean, isDecided } from "./judge.ts";
import { createMind } from "./mind.ts";
import { movesOf, type Rules } from "./moves.ts";
import type { Scenario, Tamper, World } from "./types.ts";

export interface Report {
  states: number;
  moves: number;
  depth: number;
  situations: number;
  ms: number;
  violation?: { what: string; schedule: string[] };
}

interface Node {
  parent: number;
  label: string;
  depth: number;
  /** The stored state is the mirror image of its text. */
  mirrored: boolean;
  decided: boolean;
  clean: boolean;
  cut: boolean;
  /** Places whose process is alive, as bits. */
  alive: number;
}

/** A fair move: the place of its process, 2 for nobody's; and whether places are swapped in the state it leads to. */
interface Edge {
  from: number;
  to: number;
  by: number;
  swapped: boolean;
}

const NOBODY = 2;

export async function explore(
  scenario: Scenario,
  o: { tamper?: Tamper; maxStates?: number } = {},
): Promise<Report> {
  const begun = performance.now();
  const [first, second] = scenario.processes;
  const twins = first !== undefined && second !== undefined && scenario.processes.length === 2;
  const ids = createIdentities(twins ? [first, second] : undefined);
  const tamper = o.tamper ?? {};
  const rules: Rules = { scenario, tamper, ids, mind: createMind(ids, tamper) };

  const nodes: Node[] = [];
  const edges: Edge[] = [];
  const seen = new Map<string, number>();
  let moves = 0;

  function report(violation?: Report["violation"]): Report {
    return {
      states: nodes.length,
      moves,
      depth: nodes.at(-1)?.depth ?? 0,
      situations: rules.mind.situations(),
      ms: performance.now() - begun,
      ...(violation === undefined ? {} : { violation }),
    };
  }

  function enter(world: World, ids: Identities, parent: number, label: string): [number, boolean] {
    const { text, mirrored } = ids.state(world);
    const known = seen.get(text);
    if (known !== undefined) return [known, mirrored];
    const number = nodes.length;
    seen.set(text, number);
    nodes.push({
      parent,
      label,
      mirrored,
      depth: (nodes[parent]?.depth ?? -1) + 1,
      decided: isDecided(world),
      clean: isClean(world),
      cut: false,
      alive: world.processes.reduce((bits, p, i) => (p.dead ? bits : bits | (1 << i)), 0),
    });
    return [number, mirrored];
  }

  let frontier: [number, World][] = [];
  const start = begin(scenario);
  frontier.push([enter(start, ids, -1, "")[0], start]);
  while (frontier.length > 0) {
    const next: typeof frontier = [];
    for (const [from, world] of frontier) {
      const { list, cut } = await movesOf(world, rules);
      (nodes[from] as Node).cut = cut;
      for (const move of list) {
        moves++;
        const count = nodes.length;
        const [to, mirrored] = enter(move.next, ids, from, move.label);
        if (move.next.broken !== undefined) {
          return report({
            what: move.next.broken,
            schedule: [...scheduleTo(nodes, from), move.label],
          });
        }
        if (!move.fault) {
          const swapped = mirrored !== nodes[to]?.mirrored;
          edges.push({ from, to, by: move.by ?? NOBODY, swapped });
        }
        if (nodes.length > count) next.push([to, move.next]);
      }
      if (nodes.length > (o.maxStates ?? Infinity)) {
        throw new Error(`more than ${o.maxStates} states: tighten the bounds`);
      }
    }
    frontier = next;
  }
  const lost = lostTick(nodes, edges) ?? heldForEver(nodes, edges);
  return report(
    lost === undefined ? undefined : { what: lost.what, schedule: scheduleTo(nodes, lost.node) },
  );
}

function scheduleTo(nodes: readonly Node[], node: number): string[] {
  const labels: string[] = [];
  for (let n = node; n > 0; n = nodes[n]?.parent ?? 0) labels.push(nodes[n]?.label ?? "");
  return labels.reverse();
}

/** G2: whichever process is left alone, with the other paused for ever, still gets every due tick decided. */
function lostTick(
  nodes: readonly Node[],
  edges: readonly Edge[],
): { what: string; node: number } | undefined {
  const good = new Uint8Array(nodes.length * 2);
  nodes.forEach((node, n) => {
    for (const place of [0, 1]) {
      if (node.decided || node.cut || (node.alive & (1 << place)) === 0) good[n * 2 + place] = 1;
    }
  });
  spread(good, edges, function* ({ from, to, by, swapped }) {
    for (const place of [0, 1]) {
      if (by !== NOBODY && by !== place) continue;
      yield [from * 2 + place, to * 2 + (swapped ? 1 - place : place)];
    }
  });
  const bad = good.indexOf(0);
  return bad < 0 ? undefined : { what: "one process alone never decides the tick", node: bad >> 1 };
}

/** As soon as all goes well, every finalizer goes. */
function heldForEver(
  nodes: readonly Node[],
  edges: readonly Edge[],
): { what: string; node: number } | undefined {
  const good = new Uint8Array(nodes.length);
  nodes.forEach((node, n) => {
    if (node.clean || node.cut || node.alive === 0) good[n] = 1;
  });
  spread(good, edges, function* ({ from, to }) {
    yield [from, to];
  });
  const bad = good.indexOf(0);
  return bad < 0 ? undefined : { what: "a finalizer is never dropped", node: bad };
}

/** Marks everything from which something good can be reached. */
function spread(
  good: Uint8Array,
  edges: readonly Edge[],
  pairs: (edge: Edge) => Iterable<[number, number]>,
): void {
  // Against the order of discovery nearly everything is settled in the first pass.
  for (let changed = true; changed;) {
    changed = false;
    for (let e = edges.length - 1; e >= 0; e--) {
      for (const [from, to] of pairs(edges[e] as Edge)) {
        if (good[to] === 1 && good[from] === 0) {
          good[from] = 1;
          changed = true;
        }
      }
    }
  }
}
