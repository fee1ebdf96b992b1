/**
 * `lockedcron release-finalizers`: what the operator would do in its own time, done at once when it goes for good. Without
 * it a Job whose launch was not complete could not be deleted, nor its namespace.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  COMPONENT_LABEL,
  LAUNCH_FINALIZER,
  LEDGER_COMPONENT,
  MUTEX_COMPONENT,
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

Takes the finalizer ${LAUNCH_FINALIZER} off every Job, ledger and mutex that bears it, so that nothing waits for an operator that
is gone. Run it after the last replica has ended: while one runs, the finalizer keeps ticks from running twice.

  --namespace NAME,...       only in these namespaces (default: in all)
  --operator-namespace NAME  where the replicas keep their Leases (default: looked for in all); those that have run out
                             are deleted there
  --wait-seconds N           how long to wait for the last replica to end (default: 0)
  --kubeconfig FILE          credentials (default: KUBECONFIG, ~/.kube/config, the service account of the pod)
  --context NAME             context of the kubeconfig (default: its current one)
  --force                    although a replica seems to run
  --dry-run                  only say what would be released
  -h, --help                 this text

Exit code: 0, 1 when something could not be released or a replica runs, 2 for a wrong call.
`;

const leases = resourceType<Lease>("coordination.k8s.io/v1", "Lease", "leases");
/** How often to look whether the last replica has ended, ms. */
const LOOK_MS = 1_000;
/** Somebody else may write a ledger between our look and our write. */
const MAX_TRIES = 5;

export const releaseFinalizers: Command = {
  async run(argv, io) {
    const { values, positionals, problems } = readFlags(argv, {
      namespace: { type: "string" },
      "operator-namespace": { type: "string" },
      "wait-seconds": { type: "string" },
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
    const text = (name: string): string | undefined =>
      typeof values[name] === "string" ? values[name] : undefined;
    const wait = text("wait-seconds") ?? "0";
    if (!/^\d{1,4}$/.test(wait)) {
      problems.push(`--wait-seconds: ${quote(wait)} is not a whole number from 0 to 9999`);
    }
    if (problems.length > 0) return misuse(io, "release-finalizers", problems);
    await using client = createKubeClient({
      config: () => loadKubeConfig({ file: text("kubeconfig"), context: text("context") }),
      userAgent: "lockedcron-cli",
    });
    try {
      return await release(client, io, {
        namespaces: text("namespace")?.split(",") ?? [undefined],
        operatorNamespace: text("operator-namespace"),
        waitMs: Number(wait) * 1000,
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
  /** Undefined: all. */
  namespaces: readonly (string | undefined)[];
  operatorNamespace: string | undefined;
  waitMs: number;
  force: boolean;
  dryRun: boolean;
}

async function release(client: KubeClient, io: Io, o: Choices): Promise<ExitCode> {
  const until = io.now() + o.waitMs;
  let members = await replicas(client, o.operatorNamespace);
  while (members.some(runs(io)) && io.now() < until) {
    await sleep(LOOK_MS);
    members = await replicas(client, o.operatorNamespace);
  }
  const running = members.filter(runs(io)).map(processOf);
  if (running.length > 0 && !o.force && !o.dryRun) {
    io.error(
      `lockedcron release-finalizers: nothing was released, for the operator runs: ${running.join(", ")}. ` +
        "Stop every replica first, or say --force.\n",
    );
    return 1;
  }
  const [held, ledgers] = await heldIn(client, o.namespaces);
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
  if (o.operatorNamespace !== undefined && !o.dryRun) {
    for (const lease of members.filter((member) => !runs(io)(member))) {
      await forget(client, lease);
    }
  }
  await io.out(
    `${o.dryRun ? "To be released" : "Released"}: ${held.length} Jobs, ${ledgers.length} Leases${failed > 0 ? `; ${failed} failed` : ""}\n`,
  );
  return failed > 0 ? 1 : 0;
}

async function heldIn(
  client: KubeClient,
  namespaces: Choices["namespaces"],
): Promise<[KubeObject[], Lease[]]> {
  const found = await Promise.all(
    namespaces.map((namespace) =>
      Promise.all([
        client.list(jobs, { namespace, labelSelector: NAME_LABEL, metadataOnly: true }),
        client.list(leases, {
          namespace,
          labelSelector: `${COMPONENT_LABEL} in (${LEDGER_COMPONENT},${MUTEX_COMPONENT})`,
        }),
      ]),
    ),
  );
  return [
    found.flatMap(([{ items }]) => items.filter(isHeld)),
    found.flatMap(([, { items }]) => items.filter(isHeld)),
  ];
}

async function replicas(client: KubeClient, namespace: string | undefined): Promise<Lease[]> {
  const labelSelector = `${COMPONENT_LABEL}=${REPLICA_COMPONENT}`;
  return (await client.list(leases, { namespace, labelSelector })).items;
}

/** Whether a replica's Lease has not run out, by our clock. One that stopped in good order has none. */
function runs(io: Pick<Io, "now">): (lease: Lease) => boolean {
  return ({ spec }) => {
    const renewed = Date.parse(spec?.renewTime ?? "");
    return renewed + (spec?.leaseDurationSeconds ?? 0) * 1000 > io.now();
  };
}

function processOf({ metadata }: Lease): string {
  return metadata.annotations?.[PROCESS_ANNOTATION] ?? metadata.name;
}

/** The Lease of a replica that did not end in good order; a new one of that name may have come in between. */
async function forget(client: KubeClient, { metadata }: Lease): Promise<void> {
  const { namespace, name, uid, resourceVersion } = metadata;
  try {
    await client.delete(
      leases,
      { namespace, name },
      { preconditions: { uid, resourceVersion: resourceVersion ?? "" } },
    );
  } catch (error) {
    if (!hasReason(error, "NotFound") && !hasReason(error, "Conflict")) throw error;
  }
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
      // By a list of one: no right is needed for it that is not needed anyway.
      const fieldSelector = `metadata.name=${name}`;
      const [fresh] = (await client.list(leases, { namespace, fieldSelector })).items;
      if (fresh?.metadata.uid !== uid || !isHeld(fresh)) return;
      current = fresh;
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
