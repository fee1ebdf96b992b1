/**
 * Breadth first through every state that a scenario can reach, so that the first violation found is one of the shortest.
 * Safety is judged in each state; liveness afterwards, on the graph: from every state something good must still be within
 * reach of fair moves alone.
 */
import { begin } from "./begin.ts";
import { createGraph, NOBODY } from "./graph.ts";
import { createIdentities } from "./identity.ts";
import { isClean, isDecided } from "./judge.ts";
import { createMind } from "./mind.ts";
import { movesOf, type Rules } from "./moves.ts";
import type { Scenario, Tamper, World } from "./types.ts";

export interface Report {
  states: number;
  moves: number;
  /** Moves to the state that is furthest away. */
  depth: number;
  /** Situations of one process that were put to the code. */
  situations: number;
  violation?: { what: string; schedule: string[] };
}

/** @param scenario of one process, or of two that differ in nothing but their names */
export async function explore(scenario: Scenario, tamper: Tamper = {}): Promise<Report> {
  const [first, second] = scenario.processes;
  const twins =
    first === undefined || second === undefined ? undefined : ([first, second] as const);
  const ids = createIdentities(twins);
  const rules: Rules = { scenario, tamper, ids, mind: createMind(ids, tamper) };
  const graph = createGraph();
  const seen = new Map<string, number>();
  let moves = 0;

  function report(what?: string, schedule: string[] = []): Report {
    return {
      states: graph.size(),
      moves,
      depth: graph.depth(),
      situations: rules.mind.situations(),
      ...(what === undefined ? {} : { violation: { what, schedule } }),
    };
  }

  function enter(world: World, parent: number, label: string) {
    const { text, mirrored } = ids.state(world);
    let state = seen.get(text);
    const isNew = state === undefined;
    if (state === undefined) {
      const judged = { decided: isDecided(world), clean: isClean(world) };
      state = graph.add({ parent, label, mirrored, ...judged }, world);
      seen.set(text, state);
    }
    return { state, mirrored, isNew };
  }

  const start = begin(scenario);
  let frontier = [{ state: enter(start, -1, "").state, world: start }];
  while (frontier.length > 0) {
    const next: typeof frontier = [];
    for (const { state: from, world } of frontier) {
      const { list, cut } = await movesOf(world, rules);
      if (cut) graph.cut(from);
      for (const move of list) {
        moves++;
        const { state: to, mirrored, isNew } = enter(move.next, from, move.label);
        const { broken } = move.next;
        if (broken !== undefined) return report(broken, [...graph.scheduleTo(from), move.label]);
        if (!move.fault) graph.fairMove(from, to, move.by ?? NOBODY, mirrored);
        if (isNew) next.push({ state: to, world: move.next });
      }
    }
    frontier = next;
  }
  const dead = graph.dead();
  return dead === undefined ? report() : report(dead.what, graph.scheduleTo(dead.state));
}
