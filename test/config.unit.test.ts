import { describe, expect, it } from "vitest";
import { configSecrets, loadConfig } from "../src/config.ts";
import type { Config, ConfigInput, ConfigProblem } from "../src/config.ts";
import { optionRows } from "../src/config/usage.ts";

const THREE = "redis://a,redis://b,redis://c";

interface World extends Partial<Omit<ConfigInput, "readFile">> {
  files?: Record<string, string>;
}

function load({ argv = [], env = {}, files = {}, hostname = () => "host-1" }: World) {
  const readFile = (path: string): string => {
    const content = files[path];
    if (content === undefined) throw new Error(`ENOENT: no such file, open '${path}'`);
    return content;
  };
  return loadConfig({ argv, env, readFile, hostname });
}

function configOf(world: World): Config {
  const loaded = load(world);
  if (loaded.kind === "config") return loaded.config;
  throw new Error(loaded.kind === "invalid" ? loaded.text : loaded.kind);
}

function problemsOf(world: World): ConfigProblem[] {
  const loaded = load(world);
  return loaded.kind === "invalid" ? loaded.problems : [];
}

describe("defaults", () => {
  it("need nothing but the Redis nodes", () => {
    expect(configOf({ argv: ["--redis", THREE] })).toEqual({
      lockBackend: "redis",
      redis: [
        { name: "0/a:6379", url: "redis://a:6379" },
        { name: "1/b:6379", url: "redis://b:6379" },
        { name: "2/c:6379", url: "redis://c:6379" },
      ],
      namespace: "lockedcron-system",
      watchNamespaces: [],
      sharedMutexNamespaces: [],
      replica: "host-1",
      bindAddress: { port: 8080 },
      logLevel: "info",
      logFormat: "json",
      workers: 32,
      rankDelayMs: 75,
      electionLeaseMs: 3_000,
      takeOverAfterMs: 2_000,
      membershipLeaseSeconds: 15,
      kubeTimeoutMs: 10_000,
      shutdownGraceSeconds: 20,
      lockPrefix: "lockedcron",
    });
  });

  it("come from the pod where there is one", () => {
    const file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    const config = configOf({
      env: { LOCKEDCRON_REDIS: THREE, POD_UID: "0f-1", POD_NAME: "lockedcron-0" },
      files: { [file]: "ops\n" },
    });
    expect(config).toMatchObject({ namespace: "ops", replica: "0f-1", podName: "lockedcron-0" });
  });

  it.each([
    ["without the pod's uid", { POD_NAME: "lockedcron-0" }, []],
    ["by a flag", { POD_UID: "0f-1", POD_NAME: "lockedcron-0" }, ["--replica=mine"]],
  ])("a replica named %s is not taken for its pod, which has another uid", (_, env, argv) => {
    const config = configOf({ argv, env: { LOCKEDCRON_REDIS: THREE, ...env } });
    expect(config).not.toHaveProperty("podName");
  });

  it("take the name of the pod when its uid is not told", () => {
    const env = { LOCKEDCRON_REDIS: THREE, POD_UID: "", POD_NAME: "lockedcron-0" };
    expect(configOf({ env }).replica).toBe("lockedcron-0");
  });
});

describe("sources", () => {
  it("every setting with a flag has a variable of the same meaning", () => {
    const samples: Partial<Record<string, string>> = {
      N: "600",
      NAME: "team-a",
      "NAME,...": "team-a,team-b",
      "URL,...": THREE,
      FILE: "/etc/f",
      ID: "id-1",
      TEXT: "prefix:",
      "[HOST]:PORT": "[::1]:9090",
    };
    const tls = { LOCKEDCRON_REDIS: "rediss://a" };
    const pair = (name: string) => ({ ...tls, [name]: "/etc/f" });
    /** What some settings need beside them. */
    const together: Partial<Record<string, Record<string, string>>> = {
      "--redis": {},
      "--redis-config": {},
      "--lock-backend": {},
      "--redis-ca-file": tls,
      "--redis-cert-file": pair("LOCKEDCRON_REDIS_KEY_FILE"),
      "--redis-key-file": pair("LOCKEDCRON_REDIS_CERT_FILE"),
    };
    for (const { flag, variable, placeholder } of optionRows()) {
      if (flag === undefined) continue;
      const value = samples[placeholder] ?? placeholder.split("|").at(-1) ?? "";
      const files = { "/etc/f": flag === "--redis-config" ? "nodes: [redis://a]" : "x" };
      const common = together[flag] ?? { LOCKEDCRON_REDIS: THREE };
      const byFlag = load({ argv: [flag, value], env: common, files });
      const byVariable = load({ env: { ...common, [variable]: value }, files });
      const byNeither = load({ env: common });
      // 600 is beyond some of the ranges: then both say so, each under its own name.
      if (byFlag.kind === "invalid" && byVariable.kind === "invalid") {
        expect(byFlag.problems).toMatchObject([{ field: flag, value }]);
        expect(byVariable.problems).toMatchObject([{ field: variable, value }]);
        continue;
      }
      expect(byFlag.kind).toBe("config");
      expect(byVariable).toEqual(byFlag);
      expect(byFlag).not.toEqual(byNeither);
    }
  });

  it("a flag goes before its variable, an empty variable counts as not set", () => {
    const env = { LOCKEDCRON_REDIS: THREE, LOCKEDCRON_WORKERS: "4", LOCKEDCRON_CONTEXT: "" };
    const config = configOf({ argv: ["--workers=8"], env });
    expect(config.workers).toBe(8);
    expect(config).not.toHaveProperty("context");
  });

  it("a list may be given by commas, by repetition or both", () => {
    const argv = ["--redis", "redis://a,redis://b", "--redis=redis://c"];
    const config = configOf({ argv, env: { LOCKEDCRON_WATCH_NAMESPACES: " x, y ,x," } });
    expect(config.redis.map((node) => node.name)).toEqual(["0/a:6379", "1/b:6379", "2/c:6379"]);
    expect(config.watchNamespaces).toEqual(["x", "y"]);
  });

  it("variables of a Service beside us mean nothing, unknown ones are a warning", () => {
    const env = {
      LOCKEDCRON_REDIS: THREE,
      LOCKEDCRON_REDIS_SERVICE_HOST: "10.0.0.1",
      LOCKEDCRON_REDIS_SERVICE_PORT_REDIS: "6379",
      LOCKEDCRON_REDIS_PORT: "tcp://10.0.0.1:6379",
      LOCKEDCRON_PORT_8080_TCP_ADDR: "10.0.0.1",
      LOCKEDCRON_SOMETHING_ELSE: "1",
    };
    expect(load({ env })).toMatchObject({
      kind: "config",
      warnings: ["the variable LOCKEDCRON_SOMETHING_ELSE is no setting and does nothing"],
    });
  });

  it("--help goes before everything that is wrong, and names every setting", () => {
    const loaded = load({ argv: ["--nonsense", "--help"] });
    const text = loaded.kind === "help" ? loaded.text : "";
    for (const { flag, variable } of optionRows()) expect(text).toContain(flag ?? variable);
  });

  it("--version is told apart", () => {
    expect(load({ argv: ["--version"] })).toEqual({ kind: "version" });
  });
});

describe("Redis nodes", () => {
  it("before a change of the list are parsed the same way, and hidden the same way", () => {
    const argv = ["--redis", "redis://a", "--redis-previous", "redis://:hunter2@b"];
    const config = configOf({ argv });
    expect(config.redisPrevious).toEqual([
      { name: "0/b:6379", url: "redis://b:6379", password: "hunter2" },
    ]);
    expect(configSecrets(config)).toContain("hunter2");
  });

  it("carry what their address says, without credentials in name and URL", () => {
    const argv = [
      "--redis",
      "rediss://bob:p%40ss@Redis-0:7000/3,redis://:x@[::1],redis://10.0.0.1/",
    ];
    expect(configOf({ argv }).redis).toEqual([
      {
        name: "0/redis-0:7000",
        url: "rediss://redis-0:7000/3",
        username: "bob",
        password: "p@ss",
        tls: {},
      },
      { name: "1/[::1]:6379", url: "redis://[::1]:6379", password: "x" },
      { name: "2/10.0.0.1:6379", url: "redis://10.0.0.1:6379" },
    ]);
  });

  it("take user and password given for all, but keep their own", () => {
    const config = configOf({
      argv: ["--redis", "redis://a,redis://bob:own@b,redis://:own@c", "--redis-username", "op"],
      env: { LOCKEDCRON_REDIS_PASSWORD_FILE: "/etc/pw" },
      files: { "/etc/pw": " from file \n" },
    });
    expect(config.redis).toEqual([
      expect.objectContaining({ username: "op", passwordFile: "/etc/pw" }),
      { name: "1/b:6379", url: "redis://b:6379", username: "bob", password: "own" },
      { name: "2/c:6379", url: "redis://c:6379", username: "op", password: "own" },
    ]);
    const secrets = configSecrets(config, () => " from file \n");
    expect(new Set(secrets)).toEqual(new Set([" from file ", "own"]));
  });

  it("take the password given for all by variable", () => {
    const env = { LOCKEDCRON_REDIS: "redis://a", LOCKEDCRON_REDIS_PASSWORD: "p" };
    const config = configOf({ env });
    expect(config.redis).toMatchObject([{ password: "p" }]);
    expect(configSecrets(config)).toEqual(["p"]);
  });

  it("one is allowed, for trials", () => {
    expect(configOf({ argv: ["--redis", "redis://a"] }).redis).toHaveLength(1);
  });

  it.each<[wrong: string, says: string]>([
    ["redis://a,redis://b", "two nodes survive no failure at all"],
    ["redis://a,redis://A:6379/1,redis://c", "a:6379 is given more than once"],
    ["a:6379", '"a:6379" has no redis:// or rediss://'],
    ["http://a", "has no redis:// or rediss://"],
    ["redis://", "has no host name"],
    ["redis://a:0", "has port 0"],
    ["redis://a:70000", "no URL"],
    ["redis://a b", "no URL"],
    ["redis://a/zero", "no database number"],
    ["redis://a?db=1", "has a ? or #"],
    ["redis://:hush%@a", "address 1 has a % that encodes nothing"],
    ["redis://:hu#sh@a", "special characters of a password are written percent-encoded"],
    ["redis://:hu/sh@a", "--redis-password-file"],
    [",", "holds no address; write e.g. redis://redis-0:6379,"],
  ])("%s is refused with the way out", (wrong, says) => {
    expect(problemsOf({ argv: ["--redis", wrong] })).toEqual([
      { field: "--redis", message: expect.stringContaining(says) as string },
    ]);
  });

  it("are required", () => {
    expect(problemsOf({})).toMatchObject([
      { field: "--redis", message: expect.stringContaining("is required; write e.g. redis://") },
    ]);
  });

  it("are not for a backend that uses none", () => {
    const argv = ["--lock-backend=kubernetes"];
    expect(configOf({ argv })).toMatchObject({ lockBackend: "kubernetes", redis: [] });
    expect(problemsOf({ argv, env: { LOCKEDCRON_REDIS: THREE } })).toMatchObject([
      { field: "LOCKEDCRON_REDIS", message: expect.stringContaining("uses no Redis") as string },
    ]);
  });

  it("a client certificate goes with its key, and files must be there", () => {
    const argv = ["--redis", THREE, "--redis-cert-file=/c", "--redis-ca-file=/absent"];
    expect(problemsOf({ argv, files: { "/c": "x" } })).toEqual([
      {
        field: "--redis-ca-file",
        value: "/absent",
        message: expect.stringContaining("give the path of a PEM file") as string,
      },
      { field: "--redis-cert-file", message: "needs --redis-key-file beside it" },
    ]);
  });
});

describe("wrong settings", () => {
  it("come all at once, each with its value and the way out", () => {
    const loaded = load({
      argv: [
        "--wrokers=8",
        "extra",
        "--rank-delay-ms",
        "1e3",
        "--log-level=loud",
        "--bind-address",
        "8080",
        "--context",
        "--election-lease-ms=10",
        "--election-lease-ms=20",
        "--kubeconfig=/absent",
      ],
      env: {
        LOCKEDCRON_WORKRES: "8",
        LOCKEDCRON_LOG_FORMAT: "xml",
        LOCKEDCRON_WATCH_NAMESPACES: "a,B_",
        POD_NAME: "No_Name",
      },
    });
    expect(loaded).toMatchObject({ kind: "invalid" });
    expect(loaded.kind === "invalid" && loaded.text.split("\n")).toEqual([
      "14 settings are wrong:",
      "  --context: needs a value; write --context=VALUE",
      "  --wrokers: there is no such flag; did you mean --workers?",
      '  "extra": is not expected here; every setting is a flag, see --help',
      "  --election-lease-ms: is given more than once; keep one of them",
      "  LOCKEDCRON_WORKRES: there is no such variable; did you mean LOCKEDCRON_WORKERS?",
      '  LOCKEDCRON_WATCH_NAMESPACES "a,B_": "B_" can not be a namespace; write names such as team-a,team-b',
      '  --rank-delay-ms "1e3": write a whole number from 0 to 10000, e.g. 75',
      '  --election-lease-ms "10": write a whole number from 500 to 60000, e.g. 3000',
      '  --bind-address "8080": write [host]:port with a port from 0 to 65535, e.g. :8080 or 127.0.0.1:8080',
      '  --log-level "loud": write one of error, warn, info, debug',
      '  LOCKEDCRON_LOG_FORMAT "xml": write one of json, text',
      "  --kubeconfig \"/absent\": can not be read (ENOENT: no such file, open '/absent'); give the path of a kubeconfig",
      '  POD_NAME "No_Name": can not serve as identity of this replica; set --replica: write up to 63 lower-case letters, digits, dots and dashes, e.g. replica-1',
      "  --redis: is required; write e.g. redis://redis-0:6379,redis://redis-1:6379,redis://redis-2:6379, or give a file with --redis-config",
      "Run with --help for all settings.",
      "",
    ]);
  });

  it.each(["-1", "0", "1.5", "1025", "ten", " 3", "0x10", "NaN", "99999999999", ""])(
    "a number of workers of %j is refused",
    (value) => {
      const problems = problemsOf({ argv: ["--redis", THREE, `--workers=${value}`] });
      expect(problems).toMatchObject([{ field: "--workers", value }]);
    },
  );

  it.each([":65536", "a:b", "::1:80", "[::1]", "[a]:1", "1:2:3", ":", "a b:1", ""])(
    "a bind address of %j is refused",
    (value) => {
      const problems = problemsOf({ argv: ["--redis", THREE, `--bind-address=${value}`] });
      expect(problems).toMatchObject([{ field: "--bind-address", value }]);
    },
  );

  it.each<[value: string, want: Config["bindAddress"]]>([
    [":0", { port: 0 }],
    ["127.0.0.1:8081", { host: "127.0.0.1", port: 8081 }],
    ["[::1]:8081", { host: "::1", port: 8081 }],
    ["localhost:80", { host: "localhost", port: 80 }],
  ])("a bind address of %s is understood", (value, want) => {
    const argv = ["--redis", THREE, `--bind-address=${value}`];
    expect(configOf({ argv }).bindAddress).toEqual(want);
  });

  it.each(["", "-a", "a-", "a..b", "UPPER", "a_b", "a".repeat(64), "a b"])(
    "an identity of %j is refused",
    (value) => {
      const problems = problemsOf({ argv: ["--redis", THREE, `--replica=${value}`] });
      expect(problems).toMatchObject([{ field: "--replica", value }]);
    },
  );

  it("an unreadable, an empty and a doubled password file are told apart", () => {
    const argv = ["--redis", THREE, "--redis-password-file", "/etc/pw"];
    const said = (world: World) => problemsOf({ argv, ...world }).map(({ message }) => message);
    expect(said({})).toEqual([expect.stringContaining("can not be read (ENOENT")]);
    expect(said({ files: { "/etc/pw": "\n" } })).toEqual([expect.stringContaining("is empty")]);
    expect(said({ files: { "/etc/pw": "x" }, env: { LOCKEDCRON_REDIS_PASSWORD: "hush" } })).toEqual(
      [expect.stringContaining("does not go together with LOCKEDCRON_REDIS_PASSWORD")],
    );
  });
});

describe("secrets", () => {
  it.each<[by: string, world: World]>([
    ["a flag for the password, which does not exist", { argv: ["--redis-password", "hush"] }],
    ["the same with =", { argv: ["--redis-password=hush"] }],
    ["a wrong URL", { argv: ["--redis", "redis://:hush@"] }],
    ["a URL whose password has a comma", { argv: ["--redis", "redis://:hush,hush@a"] }],
    ["a URL whose password has a blank", { argv: ["--redis", "redis://:hu sh@a", "--x"] }],
    ["a second URL without its flag", { argv: ["--redis", "redis://a", "redis://:hush@b"] }],
    ["a variable", { env: { LOCKEDCRON_REDIS: "redis://:hush@a:x" } }],
    [
      "a password beside a password file",
      {
        argv: ["--redis", THREE, "--redis-password-file", "/f"],
        env: { LOCKEDCRON_REDIS_PASSWORD: "hush" },
      },
    ],
    ["a mistyped variable", { env: { LOCKEDCRON_REDIS_PASWORD: "hush" } }],
  ])("are not repeated when they come by %s", (_, world) => {
    const loaded = load(world);
    expect(loaded.kind).toBe("invalid");
    expect(JSON.stringify(loaded)).not.toMatch(/hush|hu sh/);
  });
});
