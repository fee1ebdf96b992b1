import { LockConfigError } from "./errors.ts";

const FORM = "redis[s]://[user[:password]@]host[:port][/db]";

/** What a Redis URL says. */
export interface UrlParts {
  readonly tls: boolean;
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username: string;
  readonly password: string;
}

/** The URL as it may be shown: whatever could be a password is hidden, also when it cannot be parsed. */
export function redactUrl(url: string): string {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)?([\s\S]*)$/i.exec(url) ?? [];
  const address = rest.slice(rest.lastIndexOf("@") + 1).replace(/[?#][\s\S]*$/, "?***");
  const shown = rest.includes("@")
    ? `***@${address}`
    : address.replace(/:(?!\d+(\/|$)).+$/, ":***");
  return scheme + shown;
}

function decode(part: string, field: string, what: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new LockConfigError(
      "BadUrl",
      field,
      `the ${what} in the URL has a stray "%"; write it percent-encoded ("%25") or give it as ${what}`,
    );
  }
}

/** @throws LockConfigError that names the field and the URL without its secret */
export function parseUrl(text: string, field: string, defaultPort: number): UrlParts {
  const refuse = (why: string) =>
    new LockConfigError("BadUrl", field, `"${redactUrl(text)}" ${why}; give ${FORM}`);
  if (typeof text !== "string" || !URL.canParse(text)) throw refuse("is not a URL");
  const url = new URL(text);
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") {
    throw refuse(`has the scheme "${url.protocol.slice(0, -1)}", not redis or rediss`);
  }
  if (url.hostname === "") throw refuse("has no host");
  if (url.search !== "" || url.hash !== "") throw refuse("has a query or a fragment");
  if (!/^(\/\d*)?$/.test(url.pathname)) throw refuse("has a path that is not a database number");
  if (url.port === "0") throw refuse("has port 0");
  return {
    tls: url.protocol === "rediss:",
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? defaultPort : Number(url.port),
    db: Number(url.pathname.slice(1) || "0"),
    username: decode(url.username, field, "username"),
    password: decode(url.password, field, "password"),
  };
}
