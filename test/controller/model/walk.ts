/**
 * Long random walks: more replicas, more ticks and more faults than every interleaving can be gone through for. At the
 * end of each the faults stop, and all must come to rest with every tick decided and no finalizer left.
 */
import { mulberry32 } from "../../builders/random.ts";
import { begin } from "./begin.ts";
import { createIdentities } from "./identity.ts";
import { isClean, isDecided } from "./judge.ts";
import { createMind } from "./mind.ts";
import type { Move } from "./move.ts";
import { sourcesOf, withoutLameFlights, type Rules } from "./moves.ts";
import type { Scenario, Tamper, World } from "./types.ts";

export interface Walk {
  seed: number;
  moves: number;
  launched: number;
  violation?: { what: string; schedule: string[] };
}

/** Fair moves that must do to come to rest; the longest walk seen needed a tenth of it. */
const REST_MOVES = 5_000;
/** One move in so many is a fault, while any is left. */
const FAULT_EVERY = 5;
/** And so many times the clock must wait, so that a tick is not gone before anything has happened. */
const CLOCK_EVERY = 20;

export async function walk(
  scenario: Scenario,
  o: { seed: number; moves: number; tamper?: Tamper },
): Promise<Walk> {
  const random = mulberry32(o.seed);
  const ids = createIdentities();
  const tamper = o.tamper ?? {};
  const rules: Rules = { scenario, tamper, ids, mind: createMind(ids, tamper) };
  const schedule: string[] = [];
  let world = begin(scenario);

  const report = (what?: string): Walk => ({
    seed: o.seed,
    moves: schedule.length,
    launched: world.created.length,
    ...(what === undefined ? {} : { violation: { what, schedule } }),
  });
  const make = (move: Move): void => {
    schedule.push(move.label);
    world = withoutLameFlights(move.next);
  };

  for (let moves = 0; moves < o.moves; moves++) {
    const fault = random() * FAULT_EVERY < 1;
    const move = (await pick(world, rules, random, fault)) ?? (await pick(world, rules, random));
    if (move === undefined) continue;
    make(move);
    if (world.broken !== undefined) return report(world.broken);
  }
  for (let moves = 0; !isAtRest(world, scenario); moves++) {
    if (moves > REST_MOVES) return report("it does not come to rest");
    const move = await pick(world, rules, random, false);
    if (move === undefined) continue;
    make(move);
    if (world.broken !== undefined) return report(world.broken);
  }
  return report();
}

function isAtRest(world: World, { times }: Scenario): boolean {
  const last = world.now === times.at(-1);
  const alive = world.processes.some((p) => !p.dead);
  return !alive || (last && isClean(world) && isDecided(world));
}

/** A random move from a random source, so that one with many moves is not preferred. */
async function pick(
  world: World,
  rules: Rules,
  random: () => number,
  fault?: boolean,
): Promise<Move | undefined> {
  const sources = sourcesOf(world, rules);
  const hurries = (): boolean => random() * CLOCK_EVERY < 1;
  while (sources.length > 0) {
    const [source] = sources.splice(Math.floor(random() * sources.length), 1);
    const moves = ((await source?.()) ?? []).filter(
      (m) => (fault === undefined || m.fault === fault) && (m.clock !== true || hurries()),
    );
    if (moves.length > 0) return moves[Math.floor(random() * moves.length)];
  }
  return undefined;
}
