import type { OwnerReference } from "../api/types.ts";

/**
 * Resources and objects as they are on the wire: raw JSON, so that fields this client does not know pass through
 * untouched, and times stay the strings that the server sent.
 */

export type { OwnerReference };

export interface ObjectMeta {
  name?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: unknown[];
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** A kind of resource; `T` is what its objects look like to the caller. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** "v1" or "group/version". */
  apiVersion: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  /** Never set: ties the type of the objects to the resource. */
  readonly object?: T;
}

export interface ObjectKey {
  namespace?: string | undefined;
  name: string;
}

export function resourceType<T extends KubeObject = KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
  namespaced = true,
): ResourceType<T> {
  return { apiVersion, kind, plural, namespaced };
}

export const jobs = resourceType("batch/v1", "Job", "jobs");
export const pods = resourceType("v1", "Pod", "pods");
export const leases = resourceType("coordination.k8s.io/v1", "Lease", "leases");
export const namespaces = resourceType("v1", "Namespace", "namespaces", false);
export const coreEvents = resourceType("v1", "Event", "events");
export const configMaps = resourceType("v1", "ConfigMap", "configmaps");
export const customResourceDefinitions = resourceType(
  "apiextensions.k8s.io/v1",
  "CustomResourceDefinition",
  "customresourcedefinitions",
  false,
);

/** What stores and queues call an object: "namespace/name", or "name" alone when it has no namespace. */
export function objectKey({ metadata }: KubeObject): string {
  const name = metadata.name ?? "";
  return metadata.namespace === undefined ? name : `${metadata.namespace}/${name}`;
}

/** Path of a resource, of one object of it or of a part of that. Throws TypeError where a name would be missing. */
export function pathOf(
  type: ResourceType,
  where: {
    namespace?: string | undefined;
    name?: string | undefined;
    subresource?: string | undefined;
  } = {},
): string {
  const root = type.apiVersion.includes("/")
    ? `/apis/${type.apiVersion}`
    : `/api/${type.apiVersion}`;
  const parts = [root];
  if (type.namespaced && where.namespace !== undefined) {
    parts.push("namespaces", segment(where.namespace, `namespace of ${type.plural}`));
  }
  parts.push(type.plural);
  if (where.name !== undefined) {
    if (type.namespaced && where.namespace === undefined) {
      throw new TypeError(`${type.plural} ${where.name}: its namespace is missing`);
    }
    parts.push(segment(where.name, `name of ${type.plural}`));
  }
  if (where.subresource !== undefined) parts.push(where.subresource);
  return parts.join("/");
}

/** An empty or dotted name would address something else than was meant. */
function segment(value: string, what: string): string {
  if (value === "" || value === "." || value === "..") {
    throw new TypeError(`${what}: "${value}" is not a name`);
  }
  return encodeURIComponent(value);
}
