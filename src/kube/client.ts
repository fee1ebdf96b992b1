import { systemClock, systemTimers } from "../clock.ts";
import { createCredentialSource } from "./credentials.ts";
import { isExpired, isKubeError, KubeError, TransportReason } from "./errors.ts";
import { type KubeObject, pathOf, type ResourceType } from "./resources.ts";
import { createTransport, type Transport, type TransportRequest } from "./transport.ts";
import type {
  CallOptions,
  CallReport,
  KubeClient,
  KubeClientOptions,
  ListOptions,
  Patch,
  Selection,
  WriteOptions,
} from "./verbs.ts";
import { runWatch, WATCH_SILENCE_MS } from "./watch.ts";

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_PAGE_SIZE = 500;
/** A list whose continuation expired between two pages is begun again this often. */
const MAX_LISTS = 3;

const JSON_TYPE = "application/json";
const METADATA_ONLY = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

const PATCH_TYPE: Record<Patch["type"], string> = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
  // JSON is YAML.
  apply: "application/apply-patch+yaml",
};

export function createKubeClient(options: KubeClientOptions): KubeClient {
  const { clock = systemClock, timers = systemTimers, random = Math.random } = options;
  const deadlineMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const transport: Transport = createTransport({
    credentials: createCredentialSource(options.config, { clock, timers }),
    userAgent: options.userAgent ?? "lockedcron",
    maxInFlight: options.maxInFlight ?? 32,
    clock,
    timers,
    random,
    onServerTime: options.onServerTime,
  });

  interface Call {
    verb: string;
    type: ResourceType;
    key: { namespace?: string | undefined; name?: string | undefined };
    method: string;
    /** For the error message, where the path does not say it. */
    name?: string | undefined;
    subresource?: string | undefined;
    query?: Query;
    accept?: string;
    contentType?: string;
    body?: unknown;
  }

  async function call(what: Call, { signal, timeoutMs, priority }: CallOptions): Promise<unknown> {
    const { verb, type, key } = what;
    const shownKey = [key.namespace, key.name ?? what.name]
      .filter((part) => part !== undefined)
      .join("/");
    return await reported(verb, type.plural, {
      action: `${verb} ${type.plural}${shownKey === "" ? "" : ` ${shownKey}`}`,
      method: what.method,
      path: pathOf(type, { ...key, subresource: what.subresource }) + queryOf(what.query ?? {}),
      accept: what.accept ?? JSON_TYPE,
      contentType: what.contentType,
      body: what.body,
      signal,
      timeoutMs: timeoutMs ?? deadlineMs,
      priority: priority ?? "normal",
    });
  }

  async function reported(verb: string, resource: string, request: TransportRequest) {
    const startedAt = clock.monotonic();
    let result = "ok";
    try {
      return await transport.call(request);
    } catch (error) {
      result = isKubeError(error) ? error.reason : "Error";
      throw error;
    } finally {
      report({ verb, resource, result, ms: clock.monotonic() - startedAt });
    }
  }

  function report(call: CallReport): void {
    try {
      options.onCall?.(call);
    } catch (error) {
      // A broken counter must not make a call that went through look as if it had failed.
      process.emitWarning(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async function listOnce<T extends KubeObject>(type: ResourceType<T>, list: ListOptions<T>) {
    const items: T[] = [];
    let next: string | undefined;
    for (;;) {
      const page = (await call(
        {
          verb: "list",
          type,
          key: { namespace: list.namespace },
          method: "GET",
          query: {
            ...selectorsOf(list),
            limit: String(list.pageSize ?? DEFAULT_PAGE_SIZE),
            continue: next,
          },
          accept: acceptOf(METADATA_LIST, list.metadataOnly),
        },
        list,
      )) as Page<T> | null | undefined;
      const version = page?.metadata?.resourceVersion ?? "";
      // ORDER: looked at before the items. Taken for a list, a strange answer would delete everything that is known.
      if (page?.items === undefined || version === "") {
        throw badAnswer(`list ${type.plural}`, "the server's answer is no list");
      }
      for (const item of page.items ?? []) {
        const object = named(type, item);
        items.push(list.map === undefined ? object : list.map(object));
      }
      next = page.metadata?.continue;
      if (next === undefined || next === "") return { items, resourceVersion: version };
    }
  }

  return {
    async get(type, key, get = {}) {
      const accept = acceptOf(METADATA_ONLY, get.metadataOnly);
      const object = await call({ verb: "get", type, key, method: "GET", accept }, get);
      return named(type, object);
    },
    async list(type, list = {}) {
      for (let begun = 1; ; begun++) {
        try {
          return await listOnce(type, list);
        } catch (error) {
          // The pages of a list are of one state; etcd has compacted it away while we were reading.
          if (!isExpired(error) || begun >= MAX_LISTS) throw error;
        }
      }
    },
    async create(type, object, write = {}) {
      const { namespace, name } = object.metadata;
      if (type.namespaced && namespace === undefined) {
        throw new TypeError(`create ${type.plural} ${name}: metadata.namespace is missing`);
      }
      const body = named(type, object);
      const query = queryOfWrite(write);
      const accept = acceptOf(METADATA_ONLY, write.metadataOnly);
      const how = { method: "POST", body, query, accept };
      return named(
        type,
        await call({ verb: "create", type, key: { namespace }, name, ...how }, write),
      );
    },
    async update(type, object, write = {}) {
      const { namespace, name = "", resourceVersion = "" } = object.metadata;
      if (resourceVersion === "") {
        throw new TypeError(`update ${type.plural} ${name}: metadata.resourceVersion is missing`);
      }
      const { subresource } = write;
      const body = named(type, object);
      const query = queryOfWrite(write);
      const key = { namespace, name };
      const accept = acceptOf(METADATA_ONLY, write.metadataOnly);
      const how = { method: "PUT", body, query, accept };
      return named(type, await call({ verb: "update", type, key, subresource, ...how }, write));
    },
    async patch(type, key, patch, write = {}) {
      const query: Query = queryOfWrite(write);
      if (patch.type === "apply" && patch.force === true) query["force"] = "true";
      const { subresource } = write;
      const how = { method: "PATCH", contentType: PATCH_TYPE[patch.type], body: patch.body };
      return named(
        type,
        await call({ verb: "patch", type, key, subresource, query, ...how }, write),
      );
    },
    async delete(type, key, remove = {}) {
      const { preconditions, propagationPolicy, gracePeriodSeconds, dryRun } = remove;
      const body = {
        apiVersion: "v1",
        kind: "DeleteOptions",
        preconditions,
        propagationPolicy,
        gracePeriodSeconds,
        dryRun: dryRun === true ? ["All"] : undefined,
      };
      await call({ verb: "delete", type, key, method: "DELETE", body }, remove);
    },
    async watch(type, watch) {
      const query = {
        ...selectorsOf(watch),
        watch: "true",
        allowWatchBookmarks: "true",
        resourceVersion: watch.resourceVersion,
        timeoutSeconds: String(watch.timeoutSeconds),
      };
      const { silenceMs = WATCH_SILENCE_MS, onOpen, onEvent } = watch;
      await runWatch(
        transport,
        {
          action: `watch ${type.plural}`,
          method: "GET",
          path: pathOf(type, { namespace: watch.namespace }) + queryOf(query),
          accept: acceptOf(METADATA_ONLY, watch.metadataOnly),
          signal: watch.signal,
          timeoutMs: watch.timeoutMs ?? deadlineMs,
          priority: "high",
        },
        {
          silenceMs,
          ...(onOpen === undefined ? {} : { onOpen }),
          onEvent: ({ type: change, object }) =>
            onEvent({ type: change, object: named(type, object) }),
        },
        { clock, timers },
      );
    },
    async raw(
      { method, path, query, body, contentType, accept },
      { signal, timeoutMs, priority } = {},
    ) {
      return await reported(method.toLowerCase(), "raw", {
        action: `${method} ${path}`,
        method,
        path: path + queryOf(query ?? {}),
        accept: accept ?? JSON_TYPE,
        contentType,
        body,
        signal,
        timeoutMs: timeoutMs ?? deadlineMs,
        priority: priority ?? "normal",
      });
    },
    async [Symbol.asyncDispose]() {
      await transport[Symbol.asyncDispose]();
    },
  };
}

interface Page<T> {
  items?: T[] | null;
  metadata?: { continue?: string; resourceVersion?: string };
}

type Query = Record<string, string | undefined>;

function queryOf(query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) params.set(name, value);
  }
  return params.size === 0 ? "" : `?${params.toString()}`;
}

function selectorsOf({ labelSelector, fieldSelector }: Selection): Query {
  return { labelSelector, fieldSelector };
}

function queryOfWrite({ dryRun, fieldManager, fieldValidation }: WriteOptions): Query {
  return { dryRun: dryRun === true ? "All" : undefined, fieldManager, fieldValidation };
}

function acceptOf(partial: string, metadataOnly: boolean | undefined): string {
  return metadataOnly === true ? `${JSON_TYPE};${partial},${JSON_TYPE}` : JSON_TYPE;
}

/** The items of a list carry no apiVersion and kind, and metadata alone comes under a kind of its own. */
function named<T extends KubeObject>(type: ResourceType<T>, answer: unknown): T {
  const object = answer as T | null | undefined;
  if (typeof object?.metadata !== "object" || object.metadata === null) {
    throw badAnswer(`read ${type.plural}`, "the server's answer is no Kubernetes object");
  }
  return { ...object, apiVersion: type.apiVersion, kind: type.kind };
}

function badAnswer(action: string, message: string): KubeError {
  const reason = TransportReason.BadAnswer;
  return new KubeError({ action, status: 200, reason, message, outcome: "unknown" });
}
