import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { KubeConfig } from "@kubernetes/client-node";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { createCredentialSource, loadKubeConfig } from "../../src/kube/credentials.ts";
import { manualTime, settle } from "../controller/manual-time.ts";
import { failureOf } from "./support.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "lockedcron-cred-"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  return rm(dir, { recursive: true, force: true });
});

type Cluster = Parameters<KubeConfig["loadFromClusterAndUser"]>[0];
type User = Parameters<KubeConfig["loadFromClusterAndUser"]>[1];

function configOf(user: Partial<User>, cluster: Partial<Cluster> = {}): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "c", server: "https://api.example:6443", skipTLSVerify: false, ...cluster },
    { name: "u", ...user },
  );
  return config;
}

function sourceOf(config: () => KubeConfig, time = manualTime()) {
  return { source: createCredentialSource(config, time), time };
}

describe("credentials", () => {
  it("server with a path, CA and client certificate", async () => {
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    const { source } = sourceOf(() =>
      configOf(
        { certData: base64("cert"), keyData: base64("key") },
        {
          server: "https://gate:443/k8s/clusters/c-1/",
          caData: base64("ca"),
          tlsServerName: "api",
        },
      ),
    );
    const credentials = await source.current();
    expect(credentials).toMatchObject({
      origin: "https://gate",
      basePath: "/k8s/clusters/c-1",
      proxy: undefined,
      tls: { servername: "api" },
    });
    const { ca, cert, key } = credentials.tls;
    expect([ca, cert, key]).toEqual(["ca", "cert", "key"].map((text) => Buffer.from(text)));
  });

  it("a token, and user and password", async () => {
    const token = sourceOf(() => configOf({ token: "t0ken" }));
    expect((await token.source.current()).headers).toEqual({ authorization: "Bearer t0ken" });
    const basic = sourceOf(() => configOf({ username: "joe", password: "secret" }));
    const { authorization } = (await basic.source.current()).headers;
    expect(authorization).toBe(`Basic ${Buffer.from("joe:secret").toString("base64")}`);
  });

  it("a token file is read anew after a refusal, without its line break", async () => {
    const tokenFile = join(dir, "token");
    await writeFile(tokenFile, "old\n");
    const { source } = sourceOf(() =>
      configOf({ authProvider: { name: "tokenFile", config: { tokenFile } } }),
    );
    const old = await source.current();
    expect(old.headers).toEqual({ authorization: "Bearer old" });
    await writeFile(tokenFile, "new\n");
    expect(await source.current()).toBe(old);
    source.refused(old);
    expect((await source.current()).headers).toEqual({ authorization: "Bearer new" });
    expect((await source.current()).identity).toBe(old.identity);
  });

  it("a refusal of credentials that were replaced meanwhile changes nothing", async () => {
    let loads = 0;
    const { source, time } = sourceOf(() => {
      loads++;
      return configOf({ token: `t${loads}` });
    });
    const first = await source.current();
    source.refused(first);
    const second = await source.current();
    await time.pass(5000);
    source.refused(first);
    expect(await source.current()).toBe(second);
    expect(loads).toBe(2);
  });

  it("a server that refuses everything makes us load at most once a second", async () => {
    let loads = 0;
    const { source, time } = sourceOf(() => {
      loads++;
      return configOf({ token: `t${loads}` });
    });
    for (let i = 0; i < 30; i++) {
      source.refused(await source.current());
      await time.pass(100);
    }
    expect(loads).toBe(4);
  });

  it("looks again by itself, without making anyone wait", async () => {
    let token = "first";
    const config = new KubeConfig();
    config.addAuthenticator({
      isAuthProvider: () => true,
      applyAuthentication(_user, options) {
        (options.headers as Record<string, string>)["Authorization"] = `Bearer ${token}`;
        return Promise.resolve();
      },
    });
    config.loadFromClusterAndUser(
      { name: "c", server: "https://api.example", skipTLSVerify: false },
      { name: "u" },
    );
    const { source, time } = sourceOf(() => config);
    await source.current();
    token = "second";
    await time.pass(31_000);
    expect((await source.current()).headers["authorization"]).toBe("Bearer first");
    await settle();
    expect((await source.current()).headers["authorization"]).toBe("Bearer second");
  });

  it("an exec plugin gives the token; its failure is told, and the next call tries again", async () => {
    const plugin = join(dir, "plugin");
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: plugin };
    await writeFile(plugin, "#!/bin/sh\necho no session >&2\nexit 1\n");
    await chmod(plugin, 0o755);
    const { source } = sourceOf(() => configOf({ exec }));
    expect(await failureOf(source.current())).toMatchObject({
      reason: "CredentialsFailure",
      outcome: "rejected",
      message: expect.stringContaining("no session") as string,
    });
    const credential = { kind: "ExecCredential", status: { token: "from-exec" } };
    await writeFile(plugin, `#!/bin/sh\necho '${JSON.stringify(credential)}'\n`);
    expect((await source.current()).headers).toEqual({ authorization: "Bearer from-exec" });
  });

  it("an exec plugin that hangs is given up", async () => {
    const config = new KubeConfig();
    config.addAuthenticator({
      isAuthProvider: () => true,
      applyAuthentication: () => new Promise(() => {}),
    });
    config.loadFromClusterAndUser(
      { name: "c", server: "https://api.example", skipTLSVerify: false },
      { name: "u" },
    );
    const { source, time } = sourceOf(() => config);
    const failure = failureOf(source.current());
    await time.pass(30_000);
    expect((await failure).message).toContain("no credentials within 30 s");
  });

  it("another certificate is another identity, another token is not", async () => {
    const identity = async (user: Partial<User>): Promise<string> =>
      (await sourceOf(() => configOf(user)).source.current()).identity;
    const [a, b, c] = await Promise.all([
      identity({ token: "1" }),
      identity({ token: "2" }),
      identity({ certData: "YQ==", keyData: "YQ==" }),
    ]);
    expect(a).toBe(b);
    expect(a).not.toBe(c);
  });

  it.each([
    [() => configOf({}, { server: "http://plain:8080" }), "HTTP protocol is not allowed"],
    [() => configOf({}, { proxyUrl: "socks5://p:1080" }), "SOCKS proxy, which is not supported"],
    [() => configOf({ certFile: "/nowhere/cert" }), "/nowhere/cert"],
    [() => new KubeConfig(), "names no cluster"],
    [() => loadKubeConfig(), "set KUBECONFIG"],
  ])("a configuration that cannot work says why", async (config, message) => {
    vi.stubEnv("KUBECONFIG", undefined);
    vi.stubEnv("HOME", dir);
    const failure = await failureOf(sourceOf(config).source.current());
    expect(failure.reason).toBe("CredentialsFailure");
    expect(failure.message).toContain(message);
  });
});
