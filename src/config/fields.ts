/** Reading the fields of an object that a person wrote, each with a message that says what to write instead. */
import { resolve } from "node:path";
import { closest } from "./closest.ts";

/** One object of a file: where it is, and what is in it. */
export interface Place {
  /** `nodes[1].tls`; empty for the file itself. */
  readonly at: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** `value` is left out where it may be a secret. */
export type Refuse = (at: string, message: string, value?: unknown) => void;

/** What is wrong goes to `refuse`, and undefined comes back, as for a field that is not there. */
export interface Fields {
  readonly refuse: Refuse;
  names(place: Place, known: readonly string[]): void;
  word(place: Place, name: string): string | undefined;
  secret(place: Place, name: string): string | undefined;
  /** From 0. */
  whole(place: Place, name: string, max: number): number | undefined;
  /** Of a file that can be read and is not empty. */
  path(place: Place, name: string, what: string): string | undefined;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param folder what paths are relative to */
export function createFields(
  refuse: Refuse,
  folder: string,
  readFile: (path: string) => string,
): Fields {
  function word({ at, fields }: Place, name: string): string | undefined {
    const value = fields[name];
    if (value === undefined || (typeof value === "string" && /^\S+$/.test(value))) return value;
    refuse(`${at}.${name}`, "is no text without blanks; a number has to be quoted", value);
    return undefined;
  }

  return {
    refuse,
    word,
    names({ at, fields }, known) {
      for (const name of Object.keys(fields).filter((candidate) => !known.includes(candidate))) {
        const near = closest(name, known);
        const hint = near === undefined ? `there are ${known.join(", ")}` : `did you mean ${near}?`;
        refuse(at === "" ? name : `${at}.${name}`, `there is no such field; ${hint}`);
      }
    },
    secret({ at, fields }, name) {
      const value = fields[name];
      if (value === undefined || (typeof value === "string" && value !== "")) return value;
      refuse(`${at}.${name}`, "is no text, or empty; a number has to be quoted");
      return undefined;
    },
    whole({ at, fields }, name, max) {
      const value = fields[name];
      if (value === undefined) return undefined;
      if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max) {
        return value;
      }
      refuse(`${at}.${name}`, `is no whole number from 0 to ${max}`, value);
      return undefined;
    },
    path(place, name, what) {
      const given = word(place, name);
      if (given === undefined) return undefined;
      const full = resolve(folder, given);
      try {
        if (readFile(full).trim() !== "") return full;
        refuse(`${place.at}.${name}`, `is empty; write the ${what} into the file`, given);
      } catch (error) {
        const why = (error as Error).message;
        const message = `can not be read (${why}); give the path of a readable file`;
        refuse(`${place.at}.${name}`, message, given);
      }
      return undefined;
    },
  };
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the fields that are undefined. */
export function present<T extends object>(fields: T): Defined<T> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Defined<T>;
}
