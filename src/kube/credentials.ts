import { createHash } from "node:crypto";
import type { AgentOptions, RequestOptions } from "node:https";
import type { ConnectionOptions } from "node:tls";

import { type DispatcherOptions, KubeConfig } from "@kubernetes/client-node";

import type { Clock, Timers } from "../clock.ts";
import { KubeError, TransportReason } from "./errors.ts";

/**
 * Where the API server is and how we prove who we are. @kubernetes/client-node knows the ways (client certificates,
 * tokens, token files, exec plugins, proxies); this module asks it, remembers the answer for a while, and asks anew,
 * starting from the files, when the server says 401.
 */
export interface Credentials {
  /** scheme://host:port */
  origin: string;
  /** Path in front of every request, "" for most; a gateway may have one. */
  basePath: string;
  headers: Record<string, string>;
  tls: ConnectionOptions;
  proxy: string | undefined;
  /** Equal when the same connections can be used. */
  identity: string;
}

export interface CredentialSource {
  current(): Promise<Credentials>;
  /** The server refused these with 401. The next `current` starts from the files again. */
  refused(credentials: Credentials): void;
}

/**
 * The file, or else $KUBECONFIG, ~/.kube/config, the service account of the pod.
 * @throws Error when the file cannot be read or has no such context
 */
export function loadKubeConfig(
  from: { file?: string | undefined; context?: string | undefined } = {},
): KubeConfig {
  const config = new KubeConfig();
  if (from.file === undefined) config.loadFromDefault();
  else config.loadFromFile(from.file);
  // What client-node makes up when it finds nothing; nobody serves there without TLS any more.
  if (config.getCurrentCluster()?.server === "http://localhost:8080") {
    throw new Error(
      "no cluster: set KUBECONFIG, have a ~/.kube/config, or run in a pod with a service account",
    );
  }
  if (from.context !== undefined) {
    if (!config.getContexts().some(({ name }) => name === from.context)) {
      throw new Error(`the kubeconfig has no context "${from.context}"`);
    }
    config.setCurrentContext(from.context);
  }
  return config;
}

/** Token files are looked at again this often, in the background: the kubelet rotates them long before they end. */
const REFRESH_MS = 30_000;
/** A server that refuses everything must not make us run an exec plugin for each call. */
const RELOAD_INTERVAL_MS = 1000;
/** An exec plugin that hangs is given up after this time. */
const LOAD_TIMEOUT_MS = 30_000;

export function createCredentialSource(
  config: () => KubeConfig,
  { clock, timers }: { clock: Clock; timers: Timers },
): CredentialSource {
  let kubeConfig: KubeConfig | undefined;
  let cached: { credentials: Credentials; at: number } | undefined;
  let loading: Promise<Credentials> | undefined;
  let reloadedAt = -Infinity;

  function load(): Promise<Credentials> {
    loading ??= withTimeout(read(), timers).finally(() => (loading = undefined));
    return loading;
  }

  async function read(): Promise<Credentials> {
    try {
      kubeConfig ??= config();
      const credentials = await credentialsOf(kubeConfig);
      cached = { credentials, at: clock.monotonic() };
      return credentials;
    } catch (cause) {
      kubeConfig = undefined;
      throw credentialsFailure(cause instanceof Error ? cause.message : String(cause), cause);
    }
  }

  return {
    async current() {
      if (cached === undefined) return await load();
      if (clock.monotonic() - cached.at > REFRESH_MS) {
        // What we have may well be good still: a failing refresh shows when the server refuses it.
        load().catch(() => undefined);
      }
      return cached.credentials;
    },
    refused(credentials) {
      if (cached?.credentials !== credentials) return;
      if (clock.monotonic() - reloadedAt < RELOAD_INTERVAL_MS) return;
      reloadedAt = clock.monotonic();
      cached = undefined;
      kubeConfig = undefined;
    },
  };
}

async function credentialsOf(kubeConfig: KubeConfig): Promise<Credentials> {
  const cluster = kubeConfig.getCurrentCluster();
  if (cluster === null) {
    throw new Error(
      `kubeconfig: the current context "${kubeConfig.getCurrentContext()}" names no cluster`,
    );
  }
  const options: RequestOptions = {};
  await kubeConfig.applyToHTTPSOptions(options);
  const dispatcher = kubeConfig.createDispatcherOptions(cluster, options as AgentOptions);
  const server = new URL(cluster.server);
  const headers = headersOf(options.headers, options.auth ?? undefined);
  const tls = tlsOf(dispatcher);
  return {
    origin: server.origin,
    basePath: server.pathname.replace(/\/+$/u, ""),
    headers,
    tls,
    proxy: proxyOf(dispatcher),
    // Hashed, since the private key is part of it.
    identity: createHash("sha256")
      .update(JSON.stringify([server.origin, cluster.proxyUrl, tls]))
      .digest("hex"),
  };
}

function headersOf(headers: unknown, basic: string | undefined): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries((headers ?? {}) as Record<string, unknown>)) {
    // A token file usually ends in a line break, which a header must not.
    result[name.toLowerCase()] = String(value).trim();
  }
  if (basic !== undefined) {
    result["authorization"] = `Basic ${Buffer.from(basic).toString("base64")}`;
  }
  return result;
}

function tlsOf(options: DispatcherOptions): ConnectionOptions {
  switch (options.type) {
    case "agent":
      return options.connect;
    case "proxy":
    case "socks":
      return options.requestTls;
    case "none":
      return {};
  }
}

function proxyOf(options: DispatcherOptions): string | undefined {
  if (options.type === "socks") {
    throw new Error(
      `kubeconfig: proxy-url "${options.uri}" is a SOCKS proxy, which is not supported; use an HTTP proxy`,
    );
  }
  return options.type === "proxy" ? options.uri : undefined;
}

function credentialsFailure(message: string, cause?: unknown): KubeError {
  return new KubeError({
    action: "load credentials",
    status: 0,
    reason: TransportReason.CredentialsFailure,
    message,
    outcome: "rejected",
    cause,
  });
}

async function withTimeout<R>(work: Promise<R>, timers: Timers): Promise<R> {
  const { promise, reject } = Promise.withResolvers<never>();
  const callOff = timers.after(LOAD_TIMEOUT_MS, () =>
    reject(
      credentialsFailure(`no credentials within ${LOAD_TIMEOUT_MS / 1000} s (exec plugin hangs?)`),
    ),
  );
  try {
    return await Promise.race([work, promise]);
  } finally {
    callOff();
  }
}
