/**
 * The schema of `spec.jobTemplate`: that of batch/v1, as Kubernetes itself publishes it, with what the API server
 * checks beyond its schema for a CronJob wherever a CRD can say it too.
 * What only the API server can judge is found by the operator, which asks it about each new template.
 */
import {
  structuralSchema,
  type OpenApiDocument,
  type Replacements,
  type StructuralSchema,
} from "./openapi.ts";
import { JOB_TEMPLATE } from "./source.ts";

const stringMap = (description: string): StructuralSchema => ({
  type: "object",
  description,
  additionalProperties: { type: "string" },
});

/** Of the metadata of a template only labels and annotations reach the Job; the rest is what people's manifests hold. */
const TEMPLATE_METADATA: StructuralSchema = {
  type: "object",
  properties: {
    annotations: stringMap("Annotations of the objects made from this template."),
    creationTimestamp: {
      type: "string",
      format: "date-time",
      description: "Ignored; older tools write it as null.",
    },
    finalizers: {
      type: "array",
      items: { type: "string" },
      "x-kubernetes-list-type": "set",
    },
    labels: stringMap("Labels of the objects made from this template."),
    name: { type: "string" },
    namespace: { type: "string" },
  },
};

/**
 * A quantity may be a fraction without quotes (`cpu: 0.5`), as it is in many a CronJob. `x-kubernetes-int-or-string`
 * refuses that, so it is a node without type: any scalar that is not a boolean, strings as the API server reads them.
 */
const QUANTITY: StructuralSchema = {
  "x-kubernetes-preserve-unknown-fields": true,
  not: { enum: [true, false] },
  maxItems: 0,
  maxProperties: 0,
  minLength: 1,
  pattern: "^ *[+-]?[0-9]*\\.?[0-9]*([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)? *$",
};

export const REPLACEMENTS: Replacements = {
  "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": TEMPLATE_METADATA,
  "io.k8s.apimachinery.pkg.apis.meta.v1.Time": { type: "string", format: "date-time" },
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": { "x-kubernetes-int-or-string": true },
  "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
};

/** Marked as required by the document, yet a CronJob without them is accepted (tried on the real API server). */
const OPTIONAL: Record<string, string[]> = {
  "io.k8s.api.batch.v1.PodFailurePolicy": ["rules"],
  "io.k8s.api.core.v1.ClusterTrustBundleProjection": ["path"],
  "io.k8s.api.core.v1.HTTPHeader": ["value"],
  "io.k8s.api.core.v1.ISCSIVolumeSource": ["lun"],
  "io.k8s.api.core.v1.PreferredSchedulingTerm": ["preference"],
  "io.k8s.api.core.v1.ScaleIOVolumeSource": ["secretRef"],
  "io.k8s.api.core.v1.SleepAction": ["seconds"],
  "io.k8s.api.core.v1.Sysctl": ["value"],
};

/**
 * Lists with a key, yet a CronJob may have the key twice: the last `env` wins, a port has two names. A list-map
 * refuses that, so here these are plain lists (what one manager applies on the server side is then the whole list).
 */
const KEYS_MAY_REPEAT: Record<string, string[]> = {
  "io.k8s.api.core.v1.Container": ["env", "ports"],
  "io.k8s.api.core.v1.PodSpec": ["hostAliases", "imagePullSecrets"],
};

const nonNegative: StructuralSchema = { minimum: 0 };
const namedImage: StructuralSchema = { required: ["image", "name"] };

/** What is added to the schema at a path (`pkg/apis/batch/validation` of Kubernetes is where each comes from). */
const ADDED: Record<string, StructuralSchema> = {
  "": { required: ["spec"] },
  spec: {
    required: ["template"],
    "x-kubernetes-validations": [
      {
        rule: "!has(self.selector)",
        message: "`selector` will be auto-generated",
        fieldPath: ".selector",
      },
      {
        rule: "!has(self.podFailurePolicy) || self.template.spec.restartPolicy == 'Never'",
        message: 'only "Never" is supported when podFailurePolicy is specified',
        fieldPath: ".template.spec.restartPolicy",
      },
    ],
  },
  "spec.activeDeadlineSeconds": nonNegative,
  "spec.backoffLimit": nonNegative,
  "spec.backoffLimitPerIndex": nonNegative,
  "spec.completions": nonNegative,
  "spec.manualSelector": { enum: [false] },
  "spec.maxFailedIndexes": nonNegative,
  "spec.parallelism": nonNegative,
  "spec.ttlSecondsAfterFinished": nonNegative,
  "spec.template": { required: ["spec"] },
  "spec.template.spec": { required: ["containers", "restartPolicy"] },
  "spec.template.spec.containers": { minItems: 1 },
  "spec.template.spec.containers[]": namedImage,
  "spec.template.spec.initContainers[]": namedImage,
  "spec.template.spec.restartPolicy": { enum: ["OnFailure", "Never"] },
};

/** Never allowed in a template, and a seventh of the whole schema. */
const REMOVED = ["spec.template.spec.ephemeralContainers"];

/**
 * @throws Error when the document has something that a structural schema cannot express, or lacks a place that
 *   the tables above name.
 */
export function jobTemplateSchema(document: OpenApiDocument): StructuralSchema {
  const schema = structuralSchema(asAccepted(document), JOB_TEMPLATE, REPLACEMENTS);
  for (const path of REMOVED) {
    const [parent, name] = [path.slice(0, path.lastIndexOf(".")), path.split(".").at(-1)!];
    at(schema, path);
    delete at(schema, parent).properties![name];
  }
  for (const [path, addition] of Object.entries(ADDED)) Object.assign(at(schema, path), addition);
  return schema;
}

/** The document with OPTIONAL and KEYS_MAY_REPEAT applied. */
function asAccepted(document: OpenApiDocument): OpenApiDocument {
  const changed = structuredClone(document);
  const schemas = changed.components.schemas;
  for (const [name, fields] of Object.entries(OPTIONAL)) {
    const schema = schemas[name];
    if (!fields.every((field) => schema?.required?.includes(field)))
      throw new Error(`${name} does not require ${fields.join(", ")}: drop it from OPTIONAL`);
    const rest = schema!.required!.filter((field) => !fields.includes(field));
    if (rest.length > 0) schema!.required = rest;
    else delete schema!.required;
  }
  for (const [name, lists] of Object.entries(KEYS_MAY_REPEAT))
    for (const list of lists) {
      const schema = schemas[name]?.properties?.[list];
      if (!schema?.["x-kubernetes-list-map-keys"])
        throw new Error(`${name}.${list} has no list keys: drop it from KEYS_MAY_REPEAT`);
      delete schema["x-kubernetes-list-map-keys"];
      schema["x-kubernetes-list-type"] = "atomic";
    }
  return changed;
}

/** The schema at a path such as `spec.containers[]`. */
function at(schema: StructuralSchema, path: string): StructuralSchema {
  let node = schema;
  for (const step of path === "" ? [] : path.split(/\.|(?=\[\])/)) {
    const next = step === "[]" ? node.items : node.properties?.[step];
    if (!next) throw new Error(`jobTemplate has no ${path} (${step} is missing)`);
    node = next;
  }
  return node;
}
