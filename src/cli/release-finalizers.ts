/**
 * `lockedcron release-finalizers`: what the operator would do in its own time, done at once when it goes for good. Without
 * it a Job whose launch was not complete could not be deleted, nor its namespace.
 */
import {
  COMPONENT_LABEL,
  LAUNCH_FINALIZER,
  LEDGER_COMPONENT,
  NAME_LABEL,
  PROCESS_ANNOTATION,
  REPLICA_COMPONENT,
} from "../api/names.ts";
import type { Lease } from "../api/types.ts";
import {
  createKubeClient,
  hasReason,
  jobs,
  loadKubeConfig,
  objectKey,
  resourceType,
  type KubeClient,
  type KubeObject,
} from "../kube/index.ts";
import { misuse, type Command, type ExitCode, type Io } from "./command.ts";
import { quote, readFlags } from "./flags.ts";

const USAGE = `Usage: lockedcron release-finalizers [options]

Takes the finalizer ${LAUNCH_FINALIZER} off every Job and ledger that bears it, so that nothing waits for an operator that
is gone. Run it after the last replica has ended: while one runs, the finalizer keeps ticks from running twice.

  --namespace NAME   only in this namespace (default: in all)
  --kubeconfig FILE  credentials (default: KUBECONFIG, ~/.kube/config, the service account of the pod)
  --context NAME     context of the kubeconfig (default: its current one)
  --force            although a replica seems to run
  --dry-run          only say what would be released
  -h, --help         this text

Exit code: 0, 1 when something could not be released or a replica runs, 2 for a wrong call.
`;

const leases = resourceType<Lease>("coordination.k8s.io/v1", "Lease", "leases");
/** Somebody else may write a ledger between our look and our write. */
const MAX_TRIES = 5;

export const releaseFinalizers: Command = {
  async run(argv, io) {
    const { values, positionals, problems } = readFlags(argv, {
      namespace: { type: "string" },
      kubeconfig: { type: "string" },
      context: { type: "string" },
      force: { type: "boolean" },
      "dry-run": { type: "boolean" },
    });
    if (values.help === true) {
      await io.out(USAGE);
      return 0;
    }
    for (const word of positionals) problems.push(`${quote(word)}: belongs to no flag`);
    if (problems.length > 0) return misuse(io, "release-finalizers", problems);
    const text = (name: string): string | undefined =>
      typeof values[name] === "string" ? values[name] : undefined;
    await using client = createKubeClient({
      config: () => loadKubeConfig({ file: text("kubeconfig"), context: text("context") }),
      userAgent: "lockedcron-cli",
    });
    try {
      return await release(client, io, {
        namespace: text("namespace"),
        force: values["force"] === true,
        dryRun: values["dry-run"] === true,
      });
    } catch (error) {
      io.error(`lockedcron release-finalizers: ${messageOf(error)}\n`);
      return 1;
    }
  },
};

interface Choices {
  namespace: string | undefined;
  force: boolean;
  dryRun: boolean;
}

async function release(client: KubeClient, io: Io, o: Choices): Promise<ExitCode> {
  const running = await runningReplicas(client, io.now());
  if (running.length > 0 && !o.force && !o.dryRun) {
    io.error(
      `lockedcron release-finalizers: nothing was released, for the operator runs: ${running.join(", ")}. ` +
        "Stop every replica first, or say --force.\n",
    );
    return 1;
  }
  const found = await Promise.all([
    client.list(jobs, { namespace: o.namespace, labelSelector: NAME_LABEL, metadataOnly: true }),
    client.list(leases, {
      namespace: o.namespace,
      labelSelector: `${COMPONENT_LABEL}=${LEDGER_COMPONENT}`,
    }),
  ]);
  const [held, ledgers] = [found[0].items.filter(isHeld), found[1].items.filter(isHeld)];
  let failed = 0;
  const one = async (object: KubeObject, kind: string, drop: () => Promise<unknown>) => {
    try {
      if (!o.dryRun) await drop();
      await io.out(`${kind} ${objectKey(object)}${o.dryRun ? " (not released: --dry-run)" : ""}\n`);
    } catch (error) {
      if (hasReason(error, "NotFound")) return;
      failed++;
      io.error(`${kind} ${objectKey(object)}: ${messageOf(error)}\n`);
    }
  };
  // ORDER: Jobs first. A ledger that goes while its Job is held would let nobody know that the Job may go.
  for (const job of held) await one(job, "Job", () => releaseJob(client, job));
  for (const ledger of ledgers) await one(ledger, "Lease", () => releaseLedger(client, ledger));
  await io.out(
    `${o.dryRun ? "To be released" : "Released"}: ${held.length} Jobs, ${ledgers.length} ledgers${failed > 0 ? `; ${failed} failed` : ""}\n`,
  );
  return failed > 0 ? 1 : 0;
}

/** Replicas whose Lease has not run out, by our clock. One that stopped in good order has none. */
async function runningReplicas(client: KubeClient, now: number): Promise<string[]> {
  const { items } = await client.list(leases, {
    labelSelector: `${COMPONENT_LABEL}=${REPLICA_COMPONENT}`,
  });
  return items
    .filter(({ spec }) => {
      const renewed = Date.parse(spec?.renewTime ?? "");
      return renewed + (spec?.leaseDurationSeconds ?? 0) * 1000 > now;
    })
    .map(({ metadata }) => metadata.annotations?.[PROCESS_ANNOTATION] ?? metadata.name);
}

function isHeld({ metadata }: KubeObject): boolean {
  return metadata.finalizers?.includes(LAUNCH_FINALIZER) ?? false;
}

/** The uid makes sure that it is the Job which was looked at. */
async function releaseJob(client: KubeClient, { metadata }: KubeObject): Promise<void> {
  const { namespace, name = "", uid } = metadata;
  const body = { metadata: { uid, "$deleteFromPrimitiveList/finalizers": [LAUNCH_FINALIZER] } };
  await client.patch(jobs, { namespace, name }, { type: "strategic", body });
}

/** By PUT: the operator's role has no patch on Leases, and needs none. */
async function releaseLedger(client: KubeClient, lease: Lease): Promise<void> {
  let current = lease;
  for (let tries = 1; ; tries++) {
    const { namespace, name, uid, finalizers = [] } = current.metadata;
    const others = finalizers.filter((finalizer) => finalizer !== LAUNCH_FINALIZER);
    try {
      await client.update(leases, {
        ...current,
        metadata: { ...current.metadata, finalizers: others },
      });
      return;
    } catch (error) {
      if (!hasReason(error, "Conflict") || tries >= MAX_TRIES) throw error;
      current = await client.get(leases, { namespace, name });
      if (current.metadata.uid !== uid || !isHeld(current)) return;
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
