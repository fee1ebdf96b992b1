import { errorShape } from "./error-shape.ts";

/** Makes text and values safe to print: no password, token or key leaves the process through it. */
export interface Redactor {
  /** `text` without passwords in URLs, credentials in headers, JWTs, PEM blocks and known secrets. */
  readonly text: (text: string) => string;
  /**
   * A deep copy of `value` fit for JSON. Fields named like a secret are masked, errors are reduced to
   * their known fields, cycles, depth, width and length are bounded. Stacks only when asked for.
   */
  readonly value: (value: unknown, options?: { stack?: boolean }) => unknown;
  /** From now on `secret` and its URL-encoded form never appear. Ignored below four characters. */
  readonly addSecret: (secret: string) => void;
}

const MASK = "***";
const MAX_TEXT = 4_096;
const MAX_DEPTH = 6;
const MAX_ITEMS = 100;
/** Shorter secrets would turn ordinary words into asterisks; they are masked by place only. */
const MIN_SECRET = 4;

const SENSITIVE_FIELD =
  /^(auth|authorization|proxy-?authorization|(set-?)?cookie|pass|passwd|password|.*password|.*passphrase|secret|.*[-_]?secret|.*private-?key|private_key|client-?key(-?data)?|api[-_]?key|.*(bearer|access|refresh|id|api|session)[-_]?token|requirepass|masterauth|credentials?)$/i;
/** Redis commands whose arguments are credentials. */
const SENSITIVE_COMMAND = /^(auth|hello|acl|config|migrate)$/i;

/** Cheap test that spares ordinary lines all of the patterns below. */
const SUSPECT =
  /:\/\/|bearer|basic|authorization|eyJ|LS0tLS1CRUdJT|-----BEGIN|AUTH|pass|secret|token|beginning with/i;

const URL_USERINFO = /([a-z][a-z0-9+.-]*:\/\/)((?:(?!,?[a-z][a-z0-9+.-]*:\/\/)[^\s'"<>`])*)@/gi;
const AUTH_HEADER = /(authorization["']?\s*[:=]\s*["']?)[^\r\n"',}]+/gi;
const BEARER = /\b(bearer)\s+(?!tokens?\b|auth)[\w.~+/-]+=*/gi;
const BASIC = /\b(basic)\s+([a-z0-9+/]{4,}={0,2})/gi;
const JWT = /\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*/g;
const PEM = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?(?:-----END \1-----|$)/g;
const PEM_BASE64 = /LS0tLS1CRUdJT[\w+/=-]*/g;
const ASSIGNMENT =
  /(\b[\w-]*(?:password|passwd|passphrase|secret|requirepass|masterauth|(?:bearer|access|refresh|id|api)[-_]?token)["']?\s*(?:=|(?<=["']\s*):)\s*["']?)[^\s"',;&}]+/gi;
/** Redis repeats what it did not understand: `unknown command 'AUTH', with args beginning with: …`. */
const ECHOED_ARGUMENTS = /(with args beginning with:).*/g;
const AUTH_COMMAND =
  /(["']?\bAUTH["']? )(?!failed|called|required|error|command|is\b|not\b|was\b|with\b|for\b|by\b).+/g;

/** An `@` behind the first slash belongs to a path, unless a colon before it says it is a password. */
function maskUserinfo(whole: string, scheme: string, userinfo: string): string {
  const slash = userinfo.indexOf("/");
  const authority = slash === -1 ? userinfo : userinfo.slice(0, slash);
  if (slash !== -1 && !/:(?!\d*$)/.test(authority)) return whole;
  const colon = userinfo.indexOf(":");
  return `${scheme}${colon === -1 ? MASK : `${userinfo.slice(0, colon)}:${MASK}`}@`;
}

/** "Basic" is also an English word: only what decodes to `user:password` is masked. */
function maskBasic(whole: string, scheme: string, encoded: string): string {
  return Buffer.from(encoded, "base64").toString("latin1").includes(":")
    ? `${scheme} ${MASK}`
    : whole;
}

function maskPatterns(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return text
    .replace(PEM, (_, label: string) => `[${label} removed]`)
    .replace(PEM_BASE64, MASK)
    .replace(URL_USERINFO, maskUserinfo)
    .replace(AUTH_HEADER, `$1${MASK}`)
    .replace(BEARER, `$1 ${MASK}`)
    .replace(BASIC, maskBasic)
    .replace(JWT, MASK)
    .replace(ASSIGNMENT, `$1${MASK}`)
    .replace(ECHOED_ARGUMENTS, `$1 ${MASK}`)
    .replace(AUTH_COMMAND, `$1${MASK}`);
}

function bounded(text: string): string {
  return text.length <= MAX_TEXT
    ? text
    : `${text.slice(0, MAX_TEXT)}… (${text.length} characters in all)`;
}

/** `token` is a fencing token when it is a number, a credential otherwise. */
function isSensitive(name: string, value: unknown): boolean {
  if (value === null || value === undefined) return false;
  if (typeof value === "number" || typeof value === "boolean") return false;
  if (/^token$/i.test(name)) return !/^\d+$/.test(typeof value === "string" ? value : "");
  return SENSITIVE_FIELD.test(name);
}

/** Starts with `secrets` as the exact texts to hide; more may follow by `addSecret`. */
export function createRedactor(secrets: Iterable<string> = []): Redactor {
  const known = new Set<string>();
  let longestFirst: string[] = [];

  function addSecret(secret: string): void {
    for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
      if (form.length >= MIN_SECRET) known.add(form);
    }
    // ORDER: a secret that contains another one goes first, or its rest would stay readable.
    longestFirst = [...known].toSorted((a, b) => b.length - a.length);
  }

  function text(raw: string): string {
    // Cut generously first: the patterns must not chew through megabytes of a foreign error page.
    let safe = raw.length > MAX_TEXT * 16 ? raw.slice(0, MAX_TEXT * 16) : raw;
    for (const secret of longestFirst) safe = safe.replaceAll(secret, MASK);
    return bounded(maskPatterns(safe));
  }

  function copy(value: unknown, stack: boolean, depth: number, seen: Set<object>): unknown {
    if (typeof value === "string") return text(value);
    if (typeof value === "bigint" || typeof value === "symbol") return String(value);
    if (typeof value === "function") return `[function ${value.name}]`;
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return "[circular]";
    if (depth > MAX_DEPTH) return "[too deep]";
    seen.add(value);
    try {
      return copyObject(value, stack, depth + 1, seen);
    } finally {
      seen.delete(value);
    }
  }

  function copyObject(value: object, stack: boolean, depth: number, seen: Set<object>): unknown {
    if (value instanceof Date) {
      return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    }
    if (value instanceof URL || value instanceof RegExp) return text(String(value));
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
    if (value instanceof Error) return copy(errorShape(value, stack), stack, depth, seen);
    if (value instanceof Map) return copyEntries([...value], stack, depth, seen);
    if (Array.isArray(value) || value instanceof Set) {
      const items = [...value].slice(0, MAX_ITEMS).map((item) => copy(item, stack, depth, seen));
      const rest = (value instanceof Set ? value.size : value.length) - items.length;
      return rest > 0 ? [...items, `[${rest} more]`] : items;
    }
    if ("args" in value && "name" in value && SENSITIVE_COMMAND.test(String(value.name))) {
      return { name: value.name, args: MASK };
    }
    return copyEntries(Object.entries(value), stack, depth, seen);
  }

  function copyEntries(
    entries: [unknown, unknown][],
    stack: boolean,
    depth: number,
    seen: Set<object>,
  ): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (const [name, item] of entries.slice(0, MAX_ITEMS)) {
      const field = text(String(name));
      result[field] = isSensitive(field, item) ? MASK : copy(item, stack, depth, seen);
    }
    if (entries.length > MAX_ITEMS) result["…"] = `[${entries.length - MAX_ITEMS} more]`;
    return result;
  }

  function value(input: unknown, options: { stack?: boolean } = {}): unknown {
    try {
      return copy(input, options.stack ?? false, 0, new Set());
    } catch (error) {
      // A getter of a foreign object threw: a log line must never be the reason of a crash.
      return `[unreadable: ${text(error instanceof Error ? error.message : String(error))}]`;
    }
  }

  for (const secret of secrets) addSecret(secret);
  return { text, value, addSecret };
}
