/**
 * Equal values get equal numbers, so that a state of the world is compared and remembered as a short list of them. With
 * two replicas that differ in nothing but their names, a state and its mirror image count as one.
 */
import { FAULTS, type World } from "./types.ts";

export interface Identities {
  /** The number of a value; values of equal content share it. */
  of(value: object): number;
  /** The one object that stands for all of this content. */
  one<T extends object>(value: T): T;
  /** A state as text; and whether the text is that of its mirror image. */
  state(world: World): { text: string; mirrored: boolean };
}

/** @param twins names of the two processes that may change places; none for no symmetry */
export function createIdentities(twins?: readonly [string, string]): Identities {
  const numbers = new Map<string, number>();
  /** Number 0 is for what is not there. */
  const texts = [""];
  const stands: (object | undefined)[] = [];
  const mirrors: number[] = [];
  const known = new WeakMap<object, number>();
  const names = twins === undefined ? undefined : new RegExp(twins.join("|"), "g");

  function numberOf(text: string): number {
    let number = numbers.get(text);
    if (number === undefined) {
      number = texts.length;
      numbers.set(text, number);
      texts.push(text);
    }
    return number;
  }

  function of(value: object): number {
    let number = known.get(value);
    if (number === undefined) {
      number = numberOf(JSON.stringify(value));
      stands[number] ??= value;
      known.set(value, number);
    }
    return number;
  }

  function mirror(number: number): number {
    if (twins === undefined || names === undefined) return number;
    const text = texts[number] ?? "";
    return (mirrors[number] ??= numberOf(
      text.replace(names, (name) => (name === twins[0] ? twins[1] : twins[0])),
    ));
  }

  const maybe = (value: object | undefined): number => (value === undefined ? 0 : of(value));
  const each = (values: readonly object[]): number[] => values.map(of);

  function partsOf(world: World): Parts {
    return {
      plain: [
        Math.floor(world.now / 1000),
        world.ownersMade,
        world.missed,
        ...FAULTS.map((f) => world.faults[f]),
      ],
      single: [
        maybe(world.owner),
        maybe(world.lease),
        maybe(world.fence),
        maybe(world.rival),
        of(world.dead),
        of(world.past),
      ],
      sets: [each(world.jobs), each(world.pods), each(world.created), each(world.flights)],
      perProcess: world.processes.map((p, i) => [of(p), ...each(world.watches[i] ?? [])]),
    };
  }

  return {
    of,
    one(value) {
      return (stands[of(value)] ?? value) as typeof value;
    },
    state(world) {
      const parts = partsOf(world);
      const plain = write(parts);
      if (twins === undefined) return { text: plain, mirrored: false };
      const image = write({
        plain: parts.plain,
        single: parts.single.map(mirror),
        sets: parts.sets.map((set) => set.map(mirror)),
        perProcess: parts.perProcess.map((list) => list.map(mirror)).toReversed(),
      });
      return image < plain ? { text: image, mirrored: true } : { text: plain, mirrored: false };
    },
  };
}

/** A state in numbers. The order within a set says nothing. */
interface Parts {
  plain: number[];
  single: number[];
  sets: number[][];
  perProcess: number[][];
}

/** Reused, for this is the innermost loop of an exploration. */
const codes: number[] = [];

function put(number: number): void {
  codes.push(number & 0xffff, number >>> 16);
}

/** All numbers as characters: exact, and far shorter than what they stand for. */
function write({ plain, single, sets, perProcess }: Parts): string {
  codes.length = 0;
  plain.forEach(put);
  single.forEach(put);
  for (const set of sets) {
    put(set.length);
    if (set.length > 1) set.sort((a, b) => a - b);
    set.forEach(put);
  }
  for (const list of perProcess) {
    put(list.length);
    list.forEach(put);
  }
  return String.fromCharCode(...codes);
}
