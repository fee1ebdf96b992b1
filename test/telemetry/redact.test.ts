import { describe, expect, it } from "vitest";
import { createRedactor } from "../../src/telemetry/redact.ts";

const JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl";
const KEY = [
  "-----BEGIN RSA PRIVATE KEY-----",
  "MIIEowIBAAKCAQEAhush",
  "-----END RSA PRIVATE KEY-----",
].join("\n");

describe("text", () => {
  const masked: Record<string, [text: string, want: string]> = {
    "a password in a URL": [
      "connect redis://:hush@redis-0:6379/0 failed",
      "connect redis://:***@redis-0:6379/0 failed",
    ],
    "a user and a password in a URL": [
      "rediss://bob:hush@redis-0:6379",
      "rediss://bob:***@redis-0:6379",
    ],
    "a password with an @, a slash and a # in it": [
      "redis://:hu@sh/hush#hush@redis-0",
      "redis://:***@redis-0",
    ],
    "each URL of a list, keeping the hosts": [
      "redis://:hush@a:1,redis://u:hush@b:2,redis://c:3",
      "redis://:***@a:1,redis://u:***@b:2,redis://c:3",
    ],
    "a token in place of a user": ["https://hush@host/path", "https://***@host/path"],
    "a bearer token": ["sent Bearer abc.DEF-123_~+/== to it", "sent Bearer *** to it"],
    "an Authorization header": [
      "authorization: Digest username=hush\r\nhost: x",
      "authorization: ***\r\nhost: x",
    ],
    "an Authorization header in JSON": [
      '{"Authorization":"Bearer hush","a":1}',
      '{"Authorization":"***","a":1}',
    ],
    "basic credentials": [
      `Basic ${Buffer.from("bob:hush").toString("base64")} refused`,
      "Basic *** refused",
    ],
    "a JSON web token": [`token ${JWT} expired`, "token *** expired"],
    "a PEM key": [`read ${KEY} from it`, "read [RSA PRIVATE KEY removed] from it"],
    "a PEM key with escaped line breaks": [
      `"${KEY.replaceAll("\n", String.raw`\n`)}"`,
      '"[RSA PRIVATE KEY removed]"',
    ],
    "a PEM key that is cut off": [KEY.slice(0, -40), "[RSA PRIVATE KEY removed]"],
    "a PEM key in base64, as in a kubeconfig": [
      `client-key-data: ${Buffer.from(KEY).toString("base64")}`,
      "client-key-data: ***",
    ],
    "a password given as an assignment": [
      "url?password=hush&db=1 requirepass=hush",
      "url?password=***&db=1 requirepass=***",
    ],
    "a password in JSON": ['{"redisPassword":"hush","n":1}', '{"redisPassword":"***","n":1}'],
    "the arguments that Redis repeats": [
      "ERR unknown command 'AUTH', with args beginning with: 'bob' 'hush' ",
      "ERR unknown command 'AUTH', with args beginning with: ***",
    ],
    "an AUTH command": ['1700.1 "AUTH" "bob" "hush"', '1700.1 "AUTH" ***'],
  };
  it.each(Object.entries(masked))("masks %s", (_, [text, want]) => {
    expect(createRedactor().text(text)).toBe(want);
  });

  it.each([
    "token 42 of ns/name, tick 2026-01-01T00:00:00Z",
    "http://127.0.0.1:6443/apis/batch/v1/namespaces/a/jobs?limit=500",
    "https://host/@scope/package@1.2.3",
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "Basic authentication is off",
    "bearer tokens are read from a file",
    "the claim was lost to replica-2 (409 Conflict)",
  ])("leaves ordinary text alone: %s", (text) => {
    expect(createRedactor().text(text)).toBe(text);
  });

  it("masks a known secret wherever it stands, also URL-encoded", () => {
    const redact = createRedactor(["p@ss word"]);
    expect(redact.text("a p@ss word b p%40ss%20word c")).toBe("a *** b *** c");
  });

  it("masks the whole of a secret that contains another one", () => {
    expect(createRedactor(["hush", "hushhush-more"]).text("x hushhush-more y")).toBe("x *** y");
  });

  it("masks a secret that became known later", () => {
    const redact = createRedactor();
    redact.addSecret("rotated-1");
    expect(redact.text("was rotated-1")).toBe("was ***");
  });

  it("does not take a secret of three letters for every such word", () => {
    expect(createRedactor(["the"]).text("the tick")).toBe("the tick");
  });

  it("bounds what it returns", () => {
    const text = createRedactor().text("x".repeat(1_000_000));
    expect(text.length).toBeLessThan(5_000);
    expect(text).toContain("(65536 characters in all)");
  });
});

describe("value", () => {
  const redact = createRedactor(["s3cret-value"]);

  it("masks fields that are named like a secret, at any depth and in any spelling", () => {
    const fields = {
      password: "hush",
      Authorization: "hush",
      list: [{ "client-key-data": "hush", accessToken: "hush", redis_password: "hush" }],
      user: { token: "hush", clientSecret: { a: "hush" } },
    };
    expect(JSON.stringify(redact.value(fields))).not.toContain("hush");
  });

  it("keeps a fencing token and the empty password", () => {
    const fields = { token: 7, other: { token: "8" }, password: null };
    expect(redact.value(fields)).toEqual(fields);
  });

  it("masks known secrets in values and in the names of fields", () => {
    expect(redact.value({ "s3cret-value": ["a s3cret-value"] })).toEqual({ "***": ["a ***"] });
  });

  it("reduces an error to its known fields, with its causes and without the request on it", () => {
    const error = Object.assign(
      new Error("GET redis://:hush@a failed", { cause: new Error("why") }),
      {
        code: "ECONNREFUSED",
        status: 503,
        request: { headers: { authorization: "Bearer hush" } },
        command: { name: "auth", args: ["hush"] },
      },
    );
    expect(redact.value({ error })).toEqual({
      error: {
        name: "Error",
        message: "GET redis://:***@a failed",
        code: "ECONNREFUSED",
        status: 503,
        cause: { name: "Error", message: "why" },
      },
    });
  });

  it("adds the stack of an error only when asked to", () => {
    const error = new TypeError("boom");
    expect(redact.value(error)).not.toHaveProperty("stack");
    expect(redact.value(error, { stack: true })).toHaveProperty(
      "stack",
      expect.stringContaining("redact.test.ts"),
    );
  });

  it("lists the errors of an AggregateError", () => {
    const error = new AggregateError([new Error("one"), new Error("two")], "both");
    expect(redact.value(error)).toMatchObject({
      errors: [{ message: "one" }, { message: "two" }],
    });
  });

  it("masks the arguments of Redis commands that carry credentials", () => {
    expect(redact.value({ name: "hello", args: ["3", "AUTH", "u", "hush"] })).toEqual({
      name: "hello",
      args: "***",
    });
  });

  it("survives cycles, depth, width, bytes, odd types and throwing getters", () => {
    const cycle: Record<string, unknown> = { date: new Date(0), n: 1n, none: undefined };
    cycle.self = cycle;
    expect(redact.value(cycle)).toEqual({
      date: "1970-01-01T00:00:00.000Z",
      n: "1",
      none: undefined,
      self: "[circular]",
    });

    let deep: unknown = "end";
    for (let i = 0; i < 50; i++) deep = { deep };
    expect(JSON.stringify(redact.value(deep))).toContain("[too deep]");

    expect(redact.value(Array.from({ length: 150 }, () => 0))).toHaveLength(101);
    expect(redact.value(Buffer.from("hush"))).toBe("[4 bytes]");
    expect(redact.value(new Date(Number.NaN))).toBe("Invalid Date");
    expect(redact.value(new Map([["a", new Set([1])]]))).toEqual({ a: [1] });
    const trap = Object.defineProperty({}, "x", {
      enumerable: true,
      get() {
        throw new Error("trap");
      },
    });
    expect(redact.value(trap)).toBe("[unreadable: trap]");
  });

  it("shows an object twice when it is no cycle", () => {
    const shared = { a: 1 };
    expect(redact.value([shared, shared])).toEqual([{ a: 1 }, { a: 1 }]);
  });
});
