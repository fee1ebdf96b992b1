import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { enlistScript } from "../scripts.ts";

/**
 * What a server's data say of themselves: one key without TTL per database. `history` changes when data were lost or
 * replaced; `list` names the nodes that vote together with this one.
 */
export interface Marker {
  /** As it is stored; '' where it could not be written (full memory). */
  readonly text: string;
  readonly history: string;
  /** '' when the data bear none. */
  readonly list: string;
  /** false: the list is entered, and one before it may still be in use */
  readonly inForce: boolean;
  /** The process under which the list was founded here; nothing had been locked before. */
  readonly foundedBy: string | undefined;
}

/** A history of data that are new: `f` for the founding of a list, `a` for a node that came to it later, or came back empty. */
export function newHistory(founding: boolean, runId: string): string {
  return `${founding ? "f" : "a"}.${runId}.${randomBytes(4).toString("hex")}`;
}

export function parseMarker(text: string): Marker {
  const [history = "", mark = ""] = text.split(" ");
  const founded = /^f\.([^.]+)\./.exec(history)?.[1];
  return {
    text,
    history,
    list: mark.replace(/\?$/, ""),
    inForce: !mark.endsWith("?"),
    foundedBy: founded,
  };
}

/** What enlist.lua is told. */
export interface Entry {
  readonly history: string;
  readonly list: string;
  readonly previous: string;
  readonly force: boolean;
  /** For data without a list. */
  readonly fresh: string;
}

/** The command that reads the marker, and changes it where enlist.lua says so. */
export function enlistWords(key: string, entry: Entry): [string, ...string[]] {
  const { history, list, previous, force, fresh } = entry;
  return ["EVAL", enlistScript, "1", key, history, list, previous, force ? "1" : "0", fresh];
}

/** @throws ReplyError */
export async function enlist(client: Redis, key: string, entry: Entry): Promise<Marker> {
  const text = await client.call(...enlistWords(key, entry));
  return parseMarker(typeof text === "string" ? text : "");
}
