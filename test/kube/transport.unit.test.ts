import { expect, it } from "vitest";

import { createKubeClient } from "../../src/kube/client.ts";
import type { CallReport, KubeClient } from "../../src/kube/verbs.ts";
import { type FakeApi, refuse, startFakeApi } from "./fake-api.ts";
import { configMaps, failureOf } from "./support.ts";

const key = { namespace: "ns", name: "a" };
const map = { metadata: { ...key, resourceVersion: "1" } };

function clientOf(api: FakeApi, onCall?: (report: CallReport) => void): KubeClient {
  return createKubeClient({
    config: () => api.config(),
    random: () => 0,
    ...(onCall === undefined ? {} : { onCall }),
  });
}

it.each([429, 500, 502, 503, 504])("a read is repeated after %d", async (code) => {
  await using api = await startFakeApi((_request, response, count) =>
    count < 3 ? refuse(response, code) : response.end(JSON.stringify(map)),
  );
  const reports: CallReport[] = [];
  await using client = clientOf(api, (report) => void reports.push(report));
  expect(await client.get(configMaps, key)).toMatchObject({ metadata: key, kind: "ConfigMap" });
  expect(api.requests).toHaveLength(3);
  expect(reports).toEqual([
    { verb: "get", resource: "configmaps", result: "ok", ms: expect.any(Number) },
  ]);
});

it.each([400, 403, 404, 410])("a read is not repeated after %d", async (code) => {
  await using api = await startFakeApi((_request, response) => refuse(response, code));
  await using client = clientOf(api);
  expect(await failureOf(client.get(configMaps, key))).toMatchObject({ status: code });
  expect(api.requests).toHaveLength(1);
});

it("a read is repeated after a broken connection", async () => {
  await using api = await startFakeApi((request, response, count) =>
    count < 3 ? request.socket.resetAndDestroy() : response.end(JSON.stringify(map)),
  );
  await using client = clientOf(api);
  await client.get(configMaps, key);
  expect(api.requests).toHaveLength(3);
});

it("a read is repeated a bounded number of times, then fails with the server's words", async () => {
  await using api = await startFakeApi((_request, response) =>
    refuse(response, 503, { reason: "ServiceUnavailable", message: "etcd is away" }),
  );
  await using client = clientOf(api);
  expect(await failureOf(client.get(configMaps, key))).toMatchObject({
    status: 503,
    message: "etcd is away",
  });
  expect(api.requests).toHaveLength(6);
});

it("a read does not wait for a Retry-After beyond its deadline", async () => {
  await using api = await startFakeApi((_request, response) => {
    response.setHeader("retry-after", "60");
    refuse(response, 429);
  });
  await using client = clientOf(api);
  expect(await failureOf(client.get(configMaps, key))).toMatchObject({
    status: 429,
    // No more than that, whatever the server asks for.
    retryAfterMs: 30_000,
  });
  expect(api.requests).toHaveLength(1);
});

it("a read waits as long as Retry-After says", async () => {
  await using api = await startFakeApi((_request, response, count) => {
    response.setHeader("retry-after", "3");
    if (count === 1) refuse(response, 429);
    else response.end(JSON.stringify(map));
  });
  const waits: number[] = [];
  await using client = createKubeClient({
    config: () => api.config(),
    timers: {
      after(ms, fn) {
        // The only wait of this length is the one asked for; it is not worth sitting out.
        if (ms === 3000) waits.push(ms);
        const timer = setTimeout(fn, ms === 3000 ? 0 : ms);
        return () => clearTimeout(timer);
      },
    },
  });
  await client.get(configMaps, key);
  expect(waits).toEqual([3000]);
});

it("a list whose continuation has expired is begun again", async () => {
  const page = (names: string[], next?: string): string =>
    JSON.stringify({
      metadata: { resourceVersion: "9", continue: next },
      items: names.map((name) => ({ metadata: { name } })),
    });
  await using api = await startFakeApi((_request, response, count) => {
    if (count === 1) response.end(page(["old"], "next"));
    else if (count === 2) refuse(response, 410, { reason: "Expired" });
    else response.end(count === 3 ? page(["a", "b"], "more") : page(["c"]));
  });
  await using client = clientOf(api);
  const { items, resourceVersion } = await client.list(configMaps);
  expect(items.map(({ metadata }) => metadata.name)).toEqual(["a", "b", "c"]);
  expect(resourceVersion).toBe("9");
  expect(api.requests[3]).toContain("continue=more");
});

it("a list that never gets to its end fails", async () => {
  await using api = await startFakeApi((_request, response) =>
    refuse(response, 410, { reason: "Expired" }),
  );
  await using client = clientOf(api);
  expect(await failureOf(client.list(configMaps))).toMatchObject({ status: 410 });
  expect(api.requests).toHaveLength(3);
});

it.each(["create", "update", "patch", "delete"] as const)(
  "%s is sent once, whatever the answer",
  async (verb) => {
    for (const fault of [401, 408, 429, 500, 503, "reset"] as const) {
      await using api = await startFakeApi((request, response) => {
        if (fault === "reset") request.socket.resetAndDestroy();
        else refuse(response, fault);
      });
      await using client = clientOf(api);
      const call = {
        create: () => client.create(configMaps, map),
        update: () => client.update(configMaps, map),
        patch: () => client.patch(configMaps, key, { type: "merge", body: {} }),
        delete: () => client.delete(configMaps, key),
      }[verb];
      const failure = await failureOf(call());
      const sure = fault === 401 || fault === 429;
      expect([fault, failure.outcome]).toEqual([fault, sure ? "rejected" : "unknown"]);
      expect(api.requests).toHaveLength(1);
    }
  },
);

it("a success whose body is cut short or no JSON: unknown", async () => {
  await using api = await startFakeApi((_request, response) => {
    response.statusCode = 201;
    response.end('{"metadata":');
  });
  await using client = clientOf(api);
  expect(await failureOf(client.create(configMaps, map))).toMatchObject({
    status: 201,
    reason: "BadAnswer",
    outcome: "unknown",
  });
});

it.each(["null", "[]", '"text"', "{}", '{"metadata":null}'])(
  "a read that is answered with %s is a bad answer",
  async (body) => {
    await using api = await startFakeApi((_request, response) => response.end(body));
    await using client = clientOf(api);
    expect((await failureOf(client.get(configMaps, key))).reason).toBe("BadAnswer");
    expect((await failureOf(client.list(configMaps))).reason).toBe("BadAnswer");
  },
);

it("reports of low priority leave places for launches, though the server answers nothing", async () => {
  const posted = Promise.withResolvers<void>();
  await using api = await startFakeApi((request, response) => {
    if (request.method !== "POST") return;
    response.end(JSON.stringify(map));
    posted.resolve();
  });
  await using client = createKubeClient({ config: () => api.config(), maxInFlight: 8 });
  const abort = new AbortController();
  const reports = Array.from({ length: 20 }, () =>
    failureOf(
      client.patch(
        configMaps,
        key,
        { type: "merge", body: {} },
        { priority: "low", signal: abort.signal },
      ),
    ),
  );
  await client.create(configMaps, map, { priority: "high" });
  await posted.promise;
  expect(api.requests.filter((line) => line.startsWith("PATCH"))).toHaveLength(2);
  abort.abort();
  const failures = await Promise.all(reports);
  expect(failures.filter(({ outcome }) => outcome === "unknown")).toHaveLength(2);
  expect(failures.filter(({ outcome }) => outcome === "rejected")).toHaveLength(18);
});

it("calls beyond the places wait for one, and all are made", async () => {
  let open = 0;
  let most = 0;
  await using api = await startFakeApi((_request, response) => {
    most = Math.max(most, ++open);
    setImmediate(() => {
      open--;
      response.end(JSON.stringify(map));
    });
  });
  await using client = createKubeClient({ config: () => api.config(), maxInFlight: 2 });
  await Promise.all(
    Array.from({ length: 20 }, () => client.get(configMaps, key, { priority: "high" })),
  );
  expect(api.requests).toHaveLength(20);
  expect(most).toBeLessThanOrEqual(2);
});

it("401: a read is repeated once with credentials loaded anew; a write is not, the next one has them", async () => {
  const tokens: unknown[] = [];
  let good = "t2";
  await using api = await startFakeApi((request, response) => {
    tokens.push(request.headers.authorization);
    if (request.headers.authorization === `Bearer ${good}`) response.end(JSON.stringify(map));
    else refuse(response, 401, { reason: "Unauthorized" });
  });
  let loads = 0;
  const time = { now: () => Date.now(), monotonic: () => performance.now() + loads * 10_000 };
  await using client = createKubeClient({
    clock: time,
    config() {
      const config = api.config();
      config.users = [{ name: "nobody", token: `t${++loads}` }];
      return config;
    },
    random: () => 0,
  });
  const options = { timeoutMs: 100_000 };
  await client.get(configMaps, key, options);
  expect(tokens).toEqual(["Bearer t1", "Bearer t2"]);
  good = "t3";
  expect((await failureOf(client.create(configMaps, map, options))).status).toBe(401);
  await client.create(configMaps, map, options);
  expect(tokens.slice(2)).toEqual(["Bearer t2", "Bearer t3"]);
  good = "none";
  expect((await failureOf(client.get(configMaps, key, options))).status).toBe(401);
  expect(tokens.slice(4)).toEqual(["Bearer t3", "Bearer t4"]);
});

it("a closed client refuses calls and ends those under way", async () => {
  const arrived = Promise.withResolvers<void>();
  await using api = await startFakeApi(() => arrived.resolve());
  const client = clientOf(api);
  const call = failureOf(client.create(configMaps, map));
  await arrived.promise;
  await client[Symbol.asyncDispose]();
  expect(await call).toMatchObject({ status: 0, outcome: "unknown" });
  expect(await failureOf(client.get(configMaps, key))).toMatchObject({ reason: "Aborted" });
  expect(api.requests).toHaveLength(1);
});

it("names are escaped, and what is no name is refused", async () => {
  await using api = await startFakeApi((_request, response) => response.end(JSON.stringify(map)));
  await using client = clientOf(api);
  await client.get(configMaps, { namespace: "a/b", name: "c?d" });
  expect(api.requests).toEqual(["GET /api/v1/namespaces/a%2Fb/configmaps/c%3Fd"]);
  for (const name of ["", ".", ".."]) {
    await expect(client.get(configMaps, { namespace: "ns", name })).rejects.toThrow(
      "is not a name",
    );
  }
  await expect(client.get(configMaps, { name: "x" })).rejects.toThrow("namespace is missing");
  await expect(client.create(configMaps, { metadata: { name: "x" } })).rejects.toThrow(
    "metadata.namespace is missing",
  );
  await expect(client.update(configMaps, { metadata: key })).rejects.toThrow(
    "metadata.resourceVersion is missing",
  );
  expect(api.requests).toHaveLength(1);
});
