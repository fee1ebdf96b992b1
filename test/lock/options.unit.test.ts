import { describe, expect, it } from "vitest";
import { createQuorumLock, LockConfigError, redactUrl } from "../../src/lock/index.ts";
import { checkEntry, nodeCountWarnings, parseNodes } from "../../src/lock/options.ts";

const THREE = ["redis://a", "redis://b", "redis://c"];
const SECRET = "s3cr@t:/?#";

function refusal(run: () => unknown): LockConfigError {
  try {
    run();
  } catch (error) {
    if (error instanceof LockConfigError) return error;
    throw error;
  }
  throw new Error("was accepted");
}

describe("node URLs", () => {
  it("are taken apart, with defaults", () => {
    const [a, b, c] = parseNodes([
      "redis://r1",
      "rediss://ops:p%40ss@r2.example:7000/3",
      { url: "redis://[::1]:7001", name: "third", username: "u", password: SECRET },
    ]);
    expect(a).toMatchObject({ name: "r1:6379", host: "r1", port: 6379, db: 0, access: {} });
    expect(b).toMatchObject({
      name: "r2.example:7000/3",
      db: 3,
      access: { username: "ops", password: "p@ss", tls: {} },
    });
    expect(c).toMatchObject({
      name: "third",
      host: "::1",
      port: 7001,
      access: { username: "u", password: SECRET },
    });
  });

  it.each([
    ["r1:6379", "BadUrl", /scheme "r1"/],
    ["", "BadUrl", /is not a URL/],
    ["http://r1", "BadUrl", /scheme "http"/],
    ["redis://", "BadUrl", /is not a URL|has no host/],
    ["redis://r1:70000", "BadUrl", /is not a URL/],
    ["redis://r1:0", "BadUrl", /port 0/],
    ["redis://r1/x", "BadUrl", /not a database number/],
    ["redis://r1?db=1", "BadUrl", /query/],
    ["redis://u:%zz@r1", "BadUrl", /stray "%"/],
  ])("refuses %j and names it", (url, code, text) => {
    const error = refusal(() => parseNodes([url, "redis://b", "redis://c"]));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(text);
    expect(error.message).toMatch(/^nodes\[0\]: /);
  });

  it.each([
    `redis://user:hunter2@r1:70000`,
    `redis://:hunter2@r1/x`,
    `redis://default:hunter2`,
    `user:hunter2@r1`,
    `redis://a@b:hunter2@r1:nope`,
    `redis://r1?password=hunter2`,
    `redis://user:hunter2@r1#x`,
  ])("never shows the password of %s", (url) => {
    const error = refusal(() => parseNodes([url, "redis://b", "redis://c"]));
    expect(error.message).not.toContain("hunter2");
    expect(redactUrl(url)).not.toContain("hunter2");
  });

  it("refuses TLS settings without rediss", () => {
    const error = refusal(() =>
      parseNodes([{ url: "redis://a", tls: {} }, "redis://b", "redis://c"]),
    );
    expect([error.code, error.field]).toEqual(["BadOption", "nodes[0].tls"]);
  });
});

describe("a Sentinel node", () => {
  const good = { sentinels: ["redis://:pw@s1", "redis://s2:5000"], masterName: "main" };

  it("is taken apart, with Sentinel's default port", () => {
    const [node] = parseNodes([{ ...good, password: "x", waitReplicas: 1 }]);
    expect(node).toMatchObject({
      name: "main",
      access: { password: "x" },
      waitReplicas: 1,
      sentinel: {
        masterName: "main",
        sentinels: [
          { host: "s1", port: 26379 },
          { host: "s2", port: 5000 },
        ],
        access: { password: "pw" },
      },
    });
  });

  it.each([
    [{ ...good, masterName: "" }, "nodes[0].masterName"],
    [{ ...good, sentinels: [] }, "nodes[0].sentinels"],
    [{ ...good, sentinels: ["http://s1"] }, "nodes[0].sentinels[0]"],
    [{ ...good, waitReplicas: -1 }, "nodes[0].waitReplicas"],
    [{ ...good, password: "x", passwordFile: "/f" }, "nodes[0].passwordFile"],
    [{ ...good, sentinelPasswordFile: "/f" }, "nodes[0].sentinelPasswordFile"],
    [{ ...good, sentinels: ["redis://s1", "rediss://s2"] }, "nodes[0].sentinels[1]"],
  ])("%j is refused", (node, field) => {
    expect(refusal(() => parseNodes([node])).field).toBe(field);
  });
});

describe("masters of one name under different sentinels", () => {
  const group = (letter: string, changes: object = {}) => ({
    sentinels: [`redis://${letter}1`, `redis://${letter}2`],
    masterName: "main",
    ...changes,
  });

  it("are different nodes when each has a name of its own", () => {
    const nodes = ["a", "b", "c"].map((letter) => group(letter, { name: `main-${letter}` }));
    expect(parseNodes(nodes).map(({ name }) => name)).toEqual(["main-a", "main-b", "main-c"]);
  });

  it.each([
    ["without names", [group("a"), group("b"), "redis://c"]],
    ["that share a sentinel", [group("a", { name: "x" }), group("a", { name: "y" }), "redis://c"]],
  ])("%s are refused", (_, nodes) => {
    expect(refusal(() => parseNodes(nodes)).code).toBe("DuplicateNode");
  });

  it("log in at the sentinels by a name and a file of their own", () => {
    const [node] = parseNodes([
      group("a", { passwordFile: "/m", sentinelUsername: "eye", sentinelPasswordFile: "/s" }),
    ]);
    expect(node?.access).toEqual({ passwordFile: "/m" });
    expect(node?.sentinel?.access).toEqual({ username: "eye", passwordFile: "/s" });
  });
});

describe("the node list", () => {
  it.each([
    [[], "NoNodes"],
    [["redis://a", "redis://b"], "TwoNodes"],
    [["redis://a", "redis://A:6379/1", "redis://b"], "DuplicateNode"],
    [
      [{ url: "redis://a", name: "x" }, { url: "redis://b", name: "x" }, "redis://c"],
      "DuplicateNode",
    ],
  ])("%j is refused: %s", (nodes, code) => {
    expect(refusal(() => parseNodes(nodes)).code).toBe(code);
  });

  it("of one node or an even number comes with a named warning", () => {
    expect(nodeCountWarnings(1).map(({ code }) => code)).toEqual(["NoFaultTolerance"]);
    expect(nodeCountWarnings(4).map(({ code }) => code)).toEqual(["EvenNodeCount"]);
    expect(nodeCountWarnings(5)).toEqual([]);
  });

  it("is checked before anything connects", () => {
    expect(refusal(() => createQuorumLock({ nodes: THREE.slice(1) })).code).toBe("TwoNodes");
    expect(refusal(() => createQuorumLock({ nodes: THREE, nodeTimeoutMs: NaN })).field).toBe(
      "nodeTimeoutMs",
    );
  });
});

describe("arguments", () => {
  it.each([NaN, 0, -1, 99, 100.5, Infinity, 2 ** 31])("a lease of %d ms is refused", (leaseMs) => {
    expect(refusal(() => checkEntry("k", "v", leaseMs)).code).toBe("BadLease");
  });

  it("an empty key or value is refused", () => {
    expect(refusal(() => checkEntry("", "v", 1000)).code).toBe("BadKey");
    expect(refusal(() => checkEntry("k", "", 1000)).code).toBe("BadValue");
  });
});
