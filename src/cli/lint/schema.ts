/**
 * What a structural schema of a CustomResourceDefinition refuses, in the words of the API server. Of its keywords those
 * are known that the CRD of LockedCronJob has; what CEL rules say is in rules.ts.
 */
import type { Path } from "../manifests.ts";

export interface Schema {
  type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  format?: string;
  not?: { enum?: unknown[] };
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  "x-kubernetes-list-map-keys"?: string[];
}

export type Report = (path: Path, message: string) => void;

/** Fields of every object, which the API server judges itself; a schema need not name them. */
const OF_EVERY_OBJECT = new Set(["apiVersion", "kind", "metadata"]);
const MAX_INT32 = 2 ** 31 - 1;

export function checkSchema(schema: Schema, value: unknown, path: Path, report: Report): void {
  // The API server drops null, as if the field were not there.
  if (value === null || value === undefined) return;
  const wrong = wrongType(schema, value);
  if (wrong !== undefined) {
    report(path, `Invalid value: ${JSON.stringify(typeOf(value))}: must be of type ${wrong}`);
    return;
  }
  if (schema.enum !== undefined && !schema.enum.includes(value)) {
    const values = schema.enum.map((each) => JSON.stringify(each)).join(", ");
    report(path, `Unsupported value: ${JSON.stringify(value)}: supported values: ${values}`);
  }
  if (typeof value === "string") checkString(schema, value, path, report);
  else if (typeof value === "number") checkNumber(schema, value, path, report);
  else if (Array.isArray(value)) checkList(schema, value, path, report);
  else if (typeof value === "object") checkObject(schema, value as Fields, path, report);
}

type Fields = Record<string, unknown>;

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/** The type that it should be of; undefined when it is. */
function wrongType(schema: Schema, value: unknown): string | undefined {
  const is = typeOf(value);
  if (schema["x-kubernetes-int-or-string"] === true) {
    return is === "integer" || is === "string" ? undefined : "integer or string";
  }
  if (schema.not?.enum?.includes(value) === true) return "number or string";
  if (schema.type === undefined || schema.type === is) return undefined;
  return schema.type === "number" && is === "integer" ? undefined : schema.type;
}

function checkString(s: Schema, value: string, path: Path, report: Report): void {
  const quoted = JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  const { minLength = 0, maxLength = Infinity, pattern } = s;
  const length = [...value].length;
  if (length < minLength) {
    report(path, `Invalid value: ${quoted}: should be at least ${minLength} chars long`);
  }
  if (length > maxLength) {
    report(path, `Too long: may not be more than ${maxLength} bytes`);
  } else if (pattern !== undefined && !new RegExp(pattern, "u").test(value)) {
    report(path, `Invalid value: ${quoted}: should match '${pattern}'`);
  }
}

function checkNumber(s: Schema, value: number, path: Path, report: Report): void {
  const { minimum = -Infinity, maximum = Infinity } = s;
  if (value < minimum) {
    report(path, `Invalid value: ${value}: should be greater than or equal to ${minimum}`);
  }
  if (value > maximum) {
    report(path, `Invalid value: ${value}: should be less than or equal to ${maximum}`);
  } else if (s.format === "int32" && Math.abs(value) > MAX_INT32) {
    report(path, `Invalid value: ${value}: does not fit 32 bits`);
  }
}

function checkList(s: Schema, value: readonly unknown[], path: Path, report: Report): void {
  const { minItems = 0, maxItems = Infinity, items } = s;
  if (value.length < minItems) {
    report(path, `Invalid value: ${value.length}: should have at least ${minItems} items`);
  }
  if (value.length > maxItems) {
    report(path, `Too many: ${value.length}: must have at most ${maxItems} items`);
  }
  const seen = new Set<string>();
  for (const [i, item] of value.entries()) {
    const key = keyOf(s, item);
    if (key !== undefined && seen.has(key)) report([...path, i], `Duplicate value: ${key}`);
    if (key !== undefined) seen.add(key);
    if (items !== undefined) checkSchema(items, item, [...path, i], report);
  }
}

/** What no two items of the list may share. */
function keyOf(s: Schema, item: unknown): string | undefined {
  if (s["x-kubernetes-list-type"] === "set") return JSON.stringify(item);
  const keys = s["x-kubernetes-list-map-keys"];
  if (keys === undefined || typeof item !== "object" || item === null) return undefined;
  return JSON.stringify(Object.fromEntries(keys.map((key) => [key, (item as Fields)[key]])));
}

function checkObject(s: Schema, value: Fields, path: Path, report: Report): void {
  for (const name of s.required ?? []) {
    if ((value[name] ?? undefined) === undefined) report([...path, name], "Required value");
  }
  const { properties = {}, additionalProperties } = s;
  const open =
    s["x-kubernetes-preserve-unknown-fields"] === true || (s.properties ?? undefined) === undefined;
  for (const [name, field] of Object.entries(value)) {
    if (path.length === 0 && OF_EVERY_OBJECT.has(name)) continue;
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (own !== undefined) checkSchema(own, field, [...path, name], report);
    else if (typeof additionalProperties === "object") {
      checkSchema(additionalProperties, field, [...path, name], report);
    } else if (!open) {
      report([...path, name], "unknown field");
    }
  }
}
