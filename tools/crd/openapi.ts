/**
 * From the API server's own OpenAPI v3 document to a structural schema, as a CustomResourceDefinition needs it.
 *
 * A structural schema has no references, every node has a type, and only a few keywords are allowed
 * (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema).
 * Anything met here that is neither known nor deliberately dropped throws: a new Kubernetes version that
 * says something new is to be read by a person, not lost.
 */

/** The part of OpenAPI v3 that the document of the API server uses. */
export interface OpenApiSchema {
  $ref?: string;
  allOf?: OpenApiSchema[];
  oneOf?: OpenApiSchema[];
  type?: string;
  format?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  properties?: Record<string, OpenApiSchema>;
  required?: string[];
  items?: OpenApiSchema;
  additionalProperties?: OpenApiSchema;
  [extension: `x-kubernetes-${string}`]: unknown;
}

export interface OpenApiDocument {
  components: { schemas: Record<string, OpenApiSchema> };
}

export interface ValidationRule {
  rule: string;
  message?: string;
  messageExpression?: string;
  reason?: "FieldValueInvalid" | "FieldValueForbidden" | "FieldValueRequired";
  fieldPath?: string;
}

/** JSONSchemaProps of apiextensions.k8s.io/v1, as far as it is used here. */
export interface StructuralSchema {
  description?: string;
  type?: string;
  format?: string;
  default?: unknown;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
  pattern?: string;
  not?: StructuralSchema;
  required?: string[];
  properties?: Record<string, StructuralSchema>;
  items?: StructuralSchema;
  additionalProperties?: StructuralSchema;
  "x-kubernetes-int-or-string"?: true;
  "x-kubernetes-preserve-unknown-fields"?: true;
  "x-kubernetes-list-type"?: string;
  "x-kubernetes-list-map-keys"?: string[];
  "x-kubernetes-map-type"?: string;
  "x-kubernetes-validations"?: ValidationRule[];
}

/** What stands in for a referenced schema instead of its own conversion. */
export type Replacements = Record<string, StructuralSchema>;

/**
 * Merging of `kubectl patch --type=strategic` and union markers are not part of a CRD. Defaults belong to the Job;
 * those of list keys, and the keys themselves, are dealt with by `keepListMapKeys`.
 */
const DROPPED = new Set([
  "default",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-patch-strategy",
  "x-kubernetes-patch-merge-key",
  "x-kubernetes-unions",
]);
const TYPES = new Set(["string", "integer", "number", "boolean", "object", "array"]);
const FORMATS = new Set(["int32", "int64", "double", "byte", "date-time"]);

/**
 * The structural schema of `name`, references resolved.
 * @throws Error naming the place (a path of property names) and the keyword that it cannot translate.
 */
export function structuralSchema(
  document: OpenApiDocument,
  name: string,
  replacements: Replacements,
): StructuralSchema {
  return resolve(name, name, []);

  function resolve(name: string, path: string, within: string[]): StructuralSchema {
    const replacement = replacements[name];
    if (replacement) return structuredClone(replacement);
    if (within.includes(name)) throw new Error(`${path}: ${name} contains itself`);
    const schema = document.components.schemas[name];
    if (!schema) throw new Error(`${path}: the document has no schema ${name}`);
    return convert(schema, path, [...within, name]);
  }

  function convert(schema: OpenApiSchema, path: string, within: string[]): StructuralSchema {
    const reference = referenceOf(schema, path);
    if (reference) {
      const target = resolve(reference, path, within);
      // The property says what it is for, the referenced type only what it is.
      return schema.description
        ? { ...target, description: firstSentence(schema.description) }
        : target;
    }
    const out: StructuralSchema = {};
    for (const keyword of Object.keys(schema).filter((keyword) => !DROPPED.has(keyword)))
      translate(keyword, schema, out, path, within);
    if (!out.type) throw new Error(`${path}: has no type`);
    keepListMapKeys(schema, out, path);
    return out;
  }

  function translate(
    keyword: string,
    from: OpenApiSchema,
    to: StructuralSchema,
    path: string,
    within: string[],
  ): void {
    const { type, format, description, required, items, additionalProperties, properties } = from;
    if (keyword === "description" && description) to.description = firstSentence(description);
    else if (keyword === "type" && type && TYPES.has(type)) to.type = type;
    else if (keyword === "format" && format && FORMATS.has(format)) to.format = format;
    else if (keyword === "enum" && from.enum) to.enum = from.enum;
    else if (keyword === "required" && required) to.required = [...required].sort();
    else if (keyword === "items" && items) to.items = convert(items, `${path}[]`, within);
    else if (keyword === "additionalProperties" && additionalProperties)
      to.additionalProperties = convert(additionalProperties, `${path}{}`, within);
    else if (keyword === "properties" && properties)
      to.properties = Object.fromEntries(
        Object.keys(properties)
          .sort()
          .map((name) => [name, convert(properties[name]!, `${path}.${name}`, within)]),
      );
    else if (keyword === "x-kubernetes-list-type" || keyword === "x-kubernetes-map-type")
      to[keyword] = from[keyword] as string;
    else
      throw new Error(
        `${path}: cannot translate ${keyword}: ${JSON.stringify(from[keyword as keyof OpenApiSchema])}`,
      );
  }

  /** Keys of a list-map must be required or have a default: the one place where a default is kept. */
  function keepListMapKeys(schema: OpenApiSchema, out: StructuralSchema, path: string): void {
    const keys = schema["x-kubernetes-list-map-keys"] as string[] | undefined;
    if (!keys) return;
    out["x-kubernetes-list-map-keys"] = keys;
    const items = out.items;
    const item = deref(schema.items!, path);
    for (const key of keys) {
      if (items?.required?.includes(key)) continue;
      const property = items?.properties?.[key];
      const fallback = item.properties?.[key]?.default;
      if (!property || fallback === undefined)
        throw new Error(`${path}: the list key ${key} is neither required nor has a default`);
      property.default = fallback;
    }
  }

  function deref(schema: OpenApiSchema, path: string): OpenApiSchema {
    const reference = referenceOf(schema, path);
    return reference ? document.components.schemas[reference]! : schema;
  }
}

/** Names of the schemas that `roots` need, themselves included, sorted. Those in `stopAt` are not followed. */
export function reachable(
  document: OpenApiDocument,
  roots: string[],
  stopAt: readonly string[] = [],
): string[] {
  const found = new Set<string>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit);
    else if (node && typeof node === "object") {
      const reference = (node as OpenApiSchema).$ref;
      if (reference) follow(refName(reference));
      Object.values(node).forEach(visit);
    }
  };
  const follow = (name: string): void => {
    if (found.has(name) || stopAt.includes(name)) return;
    found.add(name);
    visit(document.components.schemas[name]);
  };
  roots.forEach(follow);
  return [...found].sort();
}

function referenceOf(schema: OpenApiSchema, path: string): string | undefined {
  if (schema.$ref) return refName(schema.$ref);
  if (!schema.allOf) return undefined;
  const [only, ...more] = schema.allOf;
  if (more.length > 0 || !only?.$ref) throw new Error(`${path}: allOf is not a single reference`);
  return refName(only.$ref);
}

function refName(reference: string): string {
  return reference.replace("#/components/schemas/", "");
}

/** Full stops that end no sentence. */
const ABBREVIATION = /(?:\b(?:e\.g|i\.e|etc|vs|resp|cf)|\bex)$/i;

/** The first sentence of a description, on one line. */
export function firstSentence(text: string): string {
  const paragraph = text.trim().split(/\n\s*\n/)[0]!;
  const line = paragraph.replace(/\s+/g, " ");
  for (const stop of line.matchAll(/\.(?=\s)/g)) {
    const sentence = line.slice(0, stop.index);
    if (!ABBREVIATION.test(sentence)) return `${sentence}.`;
  }
  return line;
}
