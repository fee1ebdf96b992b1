/** What a user asked of the API server, by the server's own audit log; and what of a role that leaves unused. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Flags } from "../cluster/cluster.ts";

/** `verb group/resource[/subresource] namespace`. */
export interface Use {
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly refused: boolean;
}

interface Entry {
  readonly user: { readonly username: string };
  readonly verb: string;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number; readonly reason?: string };
}

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

export interface Audit extends AsyncDisposable {
  /** For the API server. */
  readonly flags: Flags;
  uses(user: string): Promise<Use[]>;
}

const POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata" }],
};

export async function openAudit(): Promise<Audit> {
  const dir = await mkdtemp(join(tmpdir(), "lockedcron-audit-"));
  const [policy, log] = [join(dir, "policy.json"), join(dir, "audit.log")];
  await writeFile(policy, JSON.stringify(POLICY));
  const uses = new Map<string, Use[]>();
  let offset = 0;
  let reading = Promise.resolve();

  /** What has come since the last time: the log is long, and asked again and again. */
  async function readOn(): Promise<void> {
    const text = (await readFile(log)).subarray(offset);
    const whole = text.subarray(0, text.lastIndexOf("\n") + 1);
    offset += whole.length;
    for (const line of whole.toString().split("\n")) {
      if (line !== "") take(JSON.parse(line) as Entry);
    }
  }

  function take({ user, verb, objectRef, responseStatus }: Entry): void {
    if (objectRef?.resource === undefined) return;
    const known = uses.get(user.username) ?? [];
    uses.set(user.username, known);
    known.push({
      verb,
      resource: [objectRef.apiGroup ?? "", objectRef.resource, objectRef.subresource]
        .filter((part) => part !== undefined)
        .join("/"),
      namespace: objectRef.namespace ?? "",
      name: objectRef.name ?? "",
      refused: responseStatus?.code === 403 && responseStatus.reason === "Forbidden",
    });
  }

  return {
    flags: { "audit-policy-file": policy, "audit-log-path": log, "audit-log-mode": "blocking" },
    async uses(user) {
      reading = reading.then(readOn);
      await reading;
      return uses.get(user) ?? [];
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

/** `verb group/resource` of each right that nobody used where it was granted. */
export function unused(
  rules: readonly Rule[],
  uses: readonly Use[],
  inNamespace?: string,
): string[] {
  const used = new Set(
    uses
      .filter(({ namespace }) => inNamespace === undefined || namespace === inNamespace)
      .map(({ verb, resource }) => `${verb} ${resource}`),
  );
  const granted = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
    ),
  );
  return granted.filter((right) => !used.has(right)).toSorted();
}
