export { createKubeClient } from "./client.ts";
export { loadKubeConfig } from "./credentials.ts";
export {
  hasReason,
  isExpired,
  isKubeError,
  isUnknown,
  KubeError,
  TransportReason,
} from "./errors.ts";
export type { CallOutcome, StatusDetails } from "./errors.ts";
export { createEventRecorder } from "./events.ts";
export type { EventType } from "./event-series.ts";
export type { EventRecorder, EventRecorderOptions, EventStats } from "./events.ts";
export { createReflector } from "./reflector.ts";
export type { Reflector, ReflectorHealth, ReflectorOptions } from "./reflector.ts";
export {
  configMaps,
  coreEvents,
  customResourceDefinitions,
  jobs,
  leases,
  namespaces,
  objectKey,
  pods,
  resourceType,
} from "./resources.ts";
export type {
  KubeObject,
  ObjectKey,
  ObjectMeta,
  OwnerReference,
  ResourceType,
} from "./resources.ts";
export { labelIndex, ownerUidIndex } from "./store.ts";
export type { IndexFunction, Store, StoreHandlers } from "./store.ts";
export type * from "./verbs.ts";
