import { describe, expect, it } from "vitest";
import { configSecrets, loadConfig } from "../src/config.ts";

const FILES: Record<string, string> = {
  "/etc/lc/a.password": "word-a\n",
  "/etc/lc/eye.password": "word-eye\n",
  "/etc/lc/empty": "\n",
  "/etc/lc/ca.crt": "PEM",
  "/etc/lc/tls.crt": "PEM",
  "/etc/lc/tls.key": "PEM",
};

function load(text: string, argv: string[] = [], env = {}) {
  const files: Record<string, string> = { ...FILES, "/etc/lc/redis.yaml": text };
  const readFile = (path: string): string => {
    const content = files[path];
    if (content === undefined) throw new Error(`ENOENT: no such file, open '${path}'`);
    return content;
  };
  const loaded = loadConfig({
    argv: ["--redis-config", "/etc/lc/redis.yaml", ...argv],
    env,
    readFile,
    hostname: () => "host-1",
  });
  return { loaded, readFile };
}

function configOf(...given: Parameters<typeof load>) {
  const { loaded, readFile } = load(...given);
  if (loaded.kind !== "config") throw new Error("text" in loaded ? loaded.text : loaded.kind);
  return { config: loaded.config, secrets: configSecrets(loaded.config, readFile) };
}

function problemsOf(...given: Parameters<typeof load>) {
  const { loaded } = load(...given);
  return loaded.kind === "invalid" ? loaded.problems : [];
}

const MIXED = `
nodes:
  - url: rediss://a:7000/2
    username: ann
    passwordFile: a.password
    tls: { caFile: ca.crt, certFile: tls.crt, keyFile: tls.key, serverName: redis }
  - redis://:in-url@b
  - masterName: cron
    name: cron-c
    sentinels: ["rediss://s1", "rediss://s2:5000"]
    username: cid
    password: word-c
    sentinelUsername: eye
    sentinelPasswordFile: /etc/lc/eye.password
    sentinelTls: { caFile: ca.crt }
    tls: {}
    db: 3
    waitReplicas: 1
    natMap: { "10.0.0.1:6379": "c:6379" }
`;

describe("the file of --redis-config", () => {
  it("says all that a node needs, paths relative to itself", () => {
    const { config, secrets } = configOf(MIXED);
    expect(config.redis).toEqual([
      {
        name: "0/a:7000",
        url: "rediss://a:7000/2",
        username: "ann",
        passwordFile: "/etc/lc/a.password",
        tls: {
          caFile: "/etc/lc/ca.crt",
          certFile: "/etc/lc/tls.crt",
          keyFile: "/etc/lc/tls.key",
          serverName: "redis",
        },
      },
      { name: "1/b:6379", url: "redis://b:6379", password: "in-url" },
      {
        name: "cron-c",
        masterName: "cron",
        sentinels: ["rediss://s1:26379", "rediss://s2:5000"],
        username: "cid",
        password: "word-c",
        sentinelUsername: "eye",
        sentinelPasswordFile: "/etc/lc/eye.password",
        sentinelTls: { caFile: "/etc/lc/ca.crt" },
        tls: {},
        db: 3,
        waitReplicas: 1,
        natMap: { "10.0.0.1:6379": "c:6379" },
      },
    ]);
    expect(new Set(secrets)).toEqual(new Set(["word-a", "in-url", "word-c", "word-eye"]));
  });

  it("may be JSON, and have the list before it", () => {
    const file = { nodes: ["redis://a"], previousNodes: ["redis://b", "redis://c", "redis://d"] };
    const { config } = configOf(JSON.stringify(file));
    expect(config.redis).toHaveLength(1);
    const names = config.redisPrevious?.map(({ name }) => name);
    expect(names).toEqual(["0/b:6379", "1/c:6379", "2/d:6379"]);
  });

  it("leaves to the settings for all nodes what a node does not say", () => {
    const text = `
nodes:
  - rediss://a
  - { url: "redis://b", password: own }
  - { masterName: cron, sentinels: ["rediss://s"], tls: { serverName: x } }
`;
    const argv = ["--redis-username=op", "--redis-password-file=/etc/lc/a.password"];
    const { config } = configOf(text, [...argv, "--redis-ca-file=/etc/lc/ca.crt"]);
    const all = { username: "op", passwordFile: "/etc/lc/a.password" };
    const caFile = "/etc/lc/ca.crt";
    expect(config.redis).toEqual([
      { name: "0/a:6379", url: "rediss://a:6379", ...all, tls: { caFile } },
      { name: "1/b:6379", url: "redis://b:6379", username: "op", password: "own" },
      {
        name: "cron",
        masterName: "cron",
        sentinels: ["rediss://s:26379"],
        ...all,
        tls: { caFile, serverName: "x" },
        sentinelTls: { caFile },
      },
    ]);
  });
});

const ONE = (rest: string) => `nodes: [{ ${rest} }]`;
const SENTINEL = 'masterName: m, sentinels: ["redis://s"]';

describe("what is wrong in the file has one message, with the way out:", () => {
  it.each<[text: string, at: string, says: RegExp, value?: string]>([
    ["nodes: [", "", /neither YAML nor JSON \(\w+ in line 1\)/, "/etc/lc/redis.yaml"],
    ["- redis://a", "", /no list of nodes; write it as/, "/etc/lc/redis.yaml"],
    ["nodes: *x", "", /no list of nodes|neither YAML/, "/etc/lc/redis.yaml"],
    ["{}", "nodes", /is no list; write one entry/],
    ["nodes: [redis://a]\nnode: 1", "node", /no such field; did you mean nodes\?/],
    ["nodes: [redis://a, redis://b]", "nodes", /two nodes survive no failure/],
    [
      "nodes: [redis://a, redis://b, 'redis://A:6379/1']",
      "nodes",
      /a:6379 is given more than once/,
    ],
    [
      "nodes: [redis://a]\npreviousNodes: [http://b]",
      "previousNodes[0].url",
      /redis:\/\//,
      "http://b",
    ],
    ["nodes: [7]", "nodes[0]", /neither an address nor an object with url/],
    [ONE("url: 7"), "nodes[0].url", /is no address; write e\.g\./, "7"],
    [ONE('url: "redis://a", usernam: b'), "nodes[0].usernam", /did you mean username\?/],
    [ONE('url: "redis://a", masterName: b'), "nodes[0].masterName", /there are url, username/],
    [ONE('url: "redis://a", tls: {}'), "nodes[0].tls", /url with rediss:\/\/ in front/],
    [ONE('url: "rediss://a", tls: true'), "nodes[0].tls", /no object; write \{caFile/, "true"],
    [ONE('url: "rediss://a", tls: {ca: x}'), "nodes[0].tls.ca", /there are caFile/],
    [
      ONE('url: "rediss://a", tls: {caFile: x}'),
      "nodes[0].tls.caFile",
      /can not be read .*ENOENT/,
      "x",
    ],
    [ONE('url: "rediss://a", tls: {keyFile: tls.key}'), "nodes[0].tls.keyFile", /needs certFile/],
    [ONE('url: "redis://a", passwordFile: empty'), "nodes[0].passwordFile", /is empty/, "empty"],
    [ONE('url: "redis://a", username: 7'), "nodes[0].username", /has to be quoted/, "7"],
    [ONE(`${SENTINEL}, db: -1`), "nodes[0].db", /whole number from 0 to 999/, "-1"],
    [ONE(`${SENTINEL}, waitReplicas: two`), "nodes[0].waitReplicas", /whole number/, "two"],
    [ONE(`${SENTINEL}, natMap: {a: b}`), "nodes[0].natMap", /host:port/, '{"a":"b"}'],
    [ONE(`${SENTINEL}, sentinelTls: {}`), "nodes[0].sentinelTls", /sentinels with rediss/],
    [ONE('sentinels: ["redis://s"]'), "nodes[0].masterName", /is missing; write the name/],
    [ONE("masterName: m"), "nodes[0].sentinels", /write those of all sentinels/],
    [ONE('masterName: m, sentinels: ["s:1"]'), "nodes[0].sentinels[0]", /redis:\/\//, "s:1"],
    [
      ONE('masterName: m, sentinels: ["redis://s/1"]'),
      "nodes[0].sentinels[0]",
      /has a path/,
      "redis://s/1",
    ],
    [ONE('masterName: m, sentinels: ["redis://s", "rediss://t"]'), "nodes[0].sentinels", /mixes/],
    [
      `nodes: [{ ${SENTINEL} }, { ${SENTINEL}, name: n }, redis://c]`,
      "nodes",
      /the master m of redis:\/\/s:26379 is given more than once/,
    ],
    [
      `nodes: [{ ${SENTINEL} }, { masterName: m, sentinels: ["redis://t"] }, redis://c]`,
      "nodes[1].name",
      /another node's, too; give each its own/,
      "m",
    ],
  ])("%s", (text, at, message, value) => {
    const field = at === "" ? "--redis-config" : `--redis-config ${at}`;
    const shown = value === undefined ? {} : { value };
    expect(problemsOf(text)).toEqual([
      { field, ...shown, message: expect.stringMatching(message) },
    ]);
  });

  it.each([
    ONE('url: "redis://:hunter2@"'),
    ONE('url: "redis://:hunter2@a", password: hunter2'),
    ONE('url: "redis://:hunter2@a", passwordFile: a.password'),
    ONE('url: "redis://a", password: hunter2, passwordFile: a.password'),
    ONE('url: "redis://a", password: {hunter2: 1}'),
    ONE(`${SENTINEL}, sentinelPassword: hunter2, sentinelPasswordFile: a.password`),
    ONE('masterName: m, sentinels: ["redis://:hunter2@s"]'),
    'nodes: [{ url: "redis://a", password: "hunter2 }]',
  ])("no password is in it: %s", (text) => {
    const problems = problemsOf(text);
    expect(problems).toHaveLength(1);
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });

  it.each<[argv: string[], field: string, says: RegExp]>([
    [["--redis=redis://a"], "--redis", /keep one of them/],
    [["--redis-previous=redis://a"], "--redis-previous", /in the file of --redis-config, too/],
    [["--lock-backend=kubernetes"], "--redis-config", /uses no Redis/],
  ])("beside %j", (argv, field, message) => {
    expect(problemsOf("nodes: [redis://a]\npreviousNodes: [redis://b]", argv)).toMatchObject([
      { field, message: expect.stringMatching(message) },
    ]);
  });

  it("a file that is not there, by variable", () => {
    const env = { LOCKEDCRON_REDIS_CONFIG: "/absent" };
    const loaded = loadConfig({ argv: [], env, hostname: () => "host-1" });
    expect(loaded.kind === "invalid" && loaded.problems).toMatchObject([
      {
        field: "LOCKEDCRON_REDIS_CONFIG",
        value: "/absent",
        message: expect.stringMatching("can not be read"),
      },
    ]);
  });
});
