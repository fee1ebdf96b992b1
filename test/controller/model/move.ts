import type { Fault, Scenario, World } from "./types.ts";

export interface Move {
  label: string;
  next: World;
  /** The process that makes it, by its place. */
  by?: number;
  /** Something went wrong. What is fair happens sooner or later; a fault need not. */
  fault: boolean;
  /** Time passes. */
  clock?: boolean;
}

export function may(world: World, scenario: Scenario, fault: Fault): boolean {
  return world.faults[fault] < (scenario.faults[fault] ?? 0);
}

export function blame(world: World, fault: Fault): World {
  return { ...world, faults: { ...world.faults, [fault]: world.faults[fault] + 1 } };
}
