import type { KubeConfig } from "@kubernetes/client-node";

import type { Clock, Timers } from "../clock.ts";
import type { CallPriority } from "./gate.ts";
import type { KubeObject, ObjectKey, ResourceType } from "./resources.ts";
import type { WatchEvent } from "./watch.ts";

/**
 * The verbs of the Kubernetes API on raw JSON. Every call has a deadline, can be aborted and fails with KubeError.
 * Reads are repeated within their deadline when that can help; a write is sent at most once.
 */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Over everything; when not given, the client's. */
  timeoutMs?: number;
  /** "high" for what launches a Job, "low" for reports. Default "normal". */
  priority?: CallPriority;
}

export interface Selection {
  /** All namespaces when not given. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  /** Only metadata is sent (PartialObjectMetadata). */
  metadataOnly?: boolean | undefined;
}

export interface ListOptions<T extends KubeObject> extends CallOptions, Selection {
  /** Objects per request, default 500. */
  pageSize?: number;
  /** Applied to each object as its page arrives, so that what is not needed is never held. */
  map?: (object: T) => T;
}

export interface WriteOptions extends CallOptions {
  dryRun?: boolean;
  fieldManager?: string;
  fieldValidation?: "Strict" | "Warn" | "Ignore";
  subresource?: "status";
  /** The answer is metadata alone (PartialObjectMetadata). */
  metadataOnly?: boolean;
}

export interface DeleteOptions extends CallOptions {
  preconditions?: { uid?: string; resourceVersion?: string };
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
  gracePeriodSeconds?: number;
  dryRun?: boolean;
}

export interface Patch {
  type: "merge" | "json" | "strategic" | "apply";
  body: unknown;
  /** Of "apply": take fields over from other managers. */
  force?: boolean;
}

export interface WatchRequest<T extends KubeObject> extends CallOptions, Selection {
  resourceVersion: string;
  /** After which the server ends the watch. */
  timeoutSeconds: number;
  silenceMs?: number;
  /** The server has accepted the watch. */
  onOpen?: () => void;
  onEvent: (event: WatchEvent<T>) => void;
}

export interface RawRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Record<string, string>;
  body?: unknown;
  contentType?: string;
  accept?: string;
}

export interface KubeClient extends AsyncDisposable {
  get<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options?: CallOptions & { metadataOnly?: boolean },
  ): Promise<T>;
  /** Every page, of one state of the cluster: the newest (a linearizable read). */
  list<T extends KubeObject>(
    type: ResourceType<T>,
    options?: ListOptions<T>,
  ): Promise<{ items: T[]; resourceVersion: string }>;
  create<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options?: WriteOptions,
  ): Promise<T>;
  /** PUT. TypeError without metadata.resourceVersion: that would overwrite whatever is there. */
  update<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options?: WriteOptions,
  ): Promise<T>;
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<T>;
  delete(type: ResourceType, key: ObjectKey, options?: DeleteOptions): Promise<void>;
  /** Resolves when the server ended the watch in good order. `timeoutMs` is for its start. */
  watch<T extends KubeObject>(type: ResourceType<T>, request: WatchRequest<T>): Promise<void>;
  raw(request: RawRequest, options?: CallOptions): Promise<unknown>;
}

/** For metrics. `result`: "ok" or the error's reason. */
export interface CallReport {
  verb: string;
  resource: string;
  result: string;
  ms: number;
}

/** When the server made an answer, by its own clock and by ours. */
export interface ServerTime {
  /** Its Date header, ms since the epoch: whole seconds. */
  date: number;
  /** Monotonic ms: before the request was sent, and when its answer was complete. */
  sentAt: number;
  receivedAt: number;
}

export interface KubeClientOptions {
  /** Asked again when the server refuses the credentials. */
  config: () => KubeConfig;
  clock?: Clock;
  timers?: Timers;
  random?: () => number;
  /** Calls under way at once, and connections for them, default 32. Watches do not count. */
  maxInFlight?: number;
  userAgent?: string;
  /** For calls that name no deadline of their own, ms. Default 10,000. */
  timeoutMs?: number;
  onCall?: (report: CallReport) => void;
  /** Called with each answer that bears a Date header, also with refusals; not for watches. */
  onServerTime?: (time: ServerTime) => void;
}
