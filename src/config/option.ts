import { isIP } from "node:net";

export type Parsed<T> = { value: T } | { problem: string };

/** One setting: a flag, a variable, a line of --help and a row of docs/config.md. */
export interface Option<T> {
  /** What stands for the value in --help. */
  placeholder: string;
  help: string;
  /** As shown; the value itself is what `parse` makes of it, or undefined when it is words. */
  defaultText?: string;
  /** What applies when neither flag nor variable is given. Absent: the setting stays undefined. */
  fallback?: T;
  /** May be repeated; the values are joined by commas. */
  repeatable?: true;
  /** By variable only: arguments are visible to every process of the machine. */
  variableOnly?: true;
  /** The value is never repeated in a message. */
  secret?: true;
  parse(text: string): Parsed<T>;
}

/** A setting that always has a value. */
export type Defaulted<T> = Option<T> & { fallback: T };

/** `takeOverAfterMs` → `--take-over-after-ms`. */
export function flagOf(field: string): string {
  return `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `takeOverAfterMs` → `LOCKEDCRON_TAKE_OVER_AFTER_MS`. */
export function variableOf(field: string): string {
  return `LOCKEDCRON_${flagOf(field).slice(2).replaceAll("-", "_").toUpperCase()}`;
}

export function integer(o: {
  min: number;
  max: number;
  fallback: number;
  help: string;
}): Defaulted<number> {
  const problem = `write a whole number from ${o.min} to ${o.max}, e.g. ${o.fallback}`;
  return {
    placeholder: "N",
    help: o.help,
    fallback: o.fallback,
    defaultText: String(o.fallback),
    parse(text) {
      const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
      return value >= o.min && value <= o.max ? { value } : { problem };
    },
  };
}

export function oneOf<const T extends string>(o: {
  values: readonly T[];
  fallback: T;
  help: string;
}): Defaulted<T> {
  return {
    placeholder: o.values.join("|"),
    help: o.help,
    fallback: o.fallback,
    defaultText: o.fallback,
    parse(text) {
      const value = o.values.find((candidate) => candidate === text);
      return value === undefined ? { problem: `write one of ${o.values.join(", ")}` } : { value };
    },
  };
}

/** Text that must match `pattern`; `problem` says what to write instead. */
export function text(o: {
  placeholder: string;
  pattern: RegExp;
  problem: string;
  help: string;
  defaultText?: string;
}): Option<string> {
  const { pattern, problem, ...rest } = o;
  return {
    ...rest,
    parse: (given) => (pattern.test(given) ? { value: given } : { problem }),
  };
}

export function withFallback(fallback: string, o: Parameters<typeof text>[0]): Defaulted<string> {
  return { ...text(o), fallback, defaultText: fallback };
}

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export function namespaces(
  help: string,
  defaultText = "all namespaces",
): Defaulted<readonly string[]> {
  return {
    placeholder: "NAME,...",
    help,
    fallback: [],
    defaultText,
    repeatable: true,
    parse(given) {
      const names = splitList(given);
      const wrong = names.filter((name) => !NAMESPACE.test(name));
      if (wrong.length === 0) return { value: [...new Set(names)] };
      return {
        problem: `${wrong.map((name) => JSON.stringify(name)).join(", ")} can not be a namespace; write names such as team-a,team-b`,
      };
    },
  };
}

export interface BindAddress {
  host?: string;
  port: number;
}

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080`. */
export function bindAddress(o: { fallback: BindAddress; help: string }): Defaulted<BindAddress> {
  const problem = "write [host]:port with a port from 0 to 65535, e.g. :8080 or 127.0.0.1:8080";
  return {
    placeholder: "[HOST]:PORT",
    help: o.help,
    fallback: o.fallback,
    defaultText: `${o.fallback.host ?? ""}:${o.fallback.port}`,
    parse(given) {
      const { host = "", port = "" } =
        /^(?<host>\[[^\]]*\]|[^:]*):(?<port>\d{1,5})$/.exec(given)?.groups ?? {};
      const bare = host.replaceAll(/^\[|\]$/g, "");
      const known = bare === host ? isIP(bare) === 4 || isHostName(bare) : isIP(bare) === 6;
      if (port === "" || Number(port) > 65_535 || !(host === "" || known)) return { problem };
      return { value: { ...(bare !== "" && { host: bare }), port: Number(port) } };
    },
  };
}

export function isHostName(host: string): boolean {
  return (
    host.length <= 253 &&
    /^[a-z0-9_]([-\w]{0,61}[a-z0-9_])?(\.[a-z0-9_]([-\w]{0,61}[a-z0-9_])?)*\.?$/i.test(host)
  );
}

export function splitList(given: string): string[] {
  return given
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}
