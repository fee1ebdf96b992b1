/**
 * `lockedcron check`: whether an operator with these settings could work from here. What `helm test` runs: the same
 * flags and variables as the operator's own.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { API_VERSION, PLURAL } from "../api/names.ts";
import type { Config } from "../config.ts";
import { jobs, type KubeClient } from "../kube/index.ts";
import { describeHealth, type QuorumLock } from "../lock/index.ts";
import { openLock } from "../operator/locks.ts";
import type { Io } from "./command.ts";
import { asOperator } from "./operator.ts";

const USAGE = `Usage: lockedcron check [settings of the operator]

Acquires and releases a lock on the Redis nodes, asks the API server for what the operator needs first, and creates a Job
with dryRun, so that nothing stays behind. The settings are the operator's, as flags or variables: see its own --help.

Exit code: 0, 1 when something does not work, 2 for a wrong setting.
`;

const LEASE_MS = 5_000;
/** For Redis and DNS to come up beside us, ms. */
const WAIT_MS = 30_000;
/** For the rest of the nodes, when a majority is there, ms. */
const SETTLE_MS = 5_000;

export const check = asOperator("check", USAGE, async (config, client, io) => {
  const namespace = config.watchNamespaces[0] ?? config.namespace;
  let failed = false;
  for (const [name, probe] of [
    ["lock", () => probeLock(config)],
    ["crd", () => probeCrd(client, config.watchNamespaces[0])],
    ["job", () => probeJob(client, namespace)],
  ] as const) {
    failed = !(await report(io, name, probe)) || failed;
  }
  return failed ? 1 : 0;
});

/** One line, whatever comes of it. */
async function report(io: Io, name: string, probe: () => Promise<string>): Promise<boolean> {
  try {
    await io.out(`ok    ${name}: ${await probe()}\n`);
    return true;
  } catch (error) {
    io.error(`FAIL  ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    return false;
  }
}

async function probeLock(config: Config): Promise<string> {
  if (config.lockBackend === "kubernetes") return "none is needed, the ledger alone elects";
  await using lock = openLock(config);
  const health = await lock.ready(WAIT_MS);
  if (!health.quorum) throw new Error(describeHealth(health));
  await withoutMistakes(lock);
  const key = `${config.lockPrefix}:check:${randomUUID()}`;
  const held = await lock.tryAcquire(key, randomUUID(), LEASE_MS);
  if (held.outcome !== "acquired") throw new Error(`not acquired: ${held.outcome}`);
  const { outcome } = await lock.release(held.grant.key, held.grant.value, LEASE_MS);
  if (outcome !== "released") throw new Error(`not released: ${outcome}`);
  return `acquired and released (${describeHealth(lock.health())})`;
}

/** A majority works, and hides what somebody has to correct; names that DNS does not know yet are given their time. */
async function withoutMistakes(lock: QuorumLock): Promise<void> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    try {
      await lock.check();
      return;
    } catch (error) {
      const unknown = /\b(ENOTFOUND|EAI_AGAIN)\b/.test((error as Error).message);
      if (!unknown || performance.now() > deadline) throw error;
      await sleep(SETTLE_MS / 10);
    }
  }
}

async function probeCrd(client: KubeClient, namespace: string | undefined): Promise<string> {
  const place = namespace === undefined ? "" : `/namespaces/${namespace}`;
  await client.raw({
    method: "GET",
    path: `/apis/${API_VERSION}${place}/${PLURAL}`,
    query: { limit: "1" },
  });
  return `${API_VERSION} ${PLURAL} can be listed`;
}

async function probeJob(client: KubeClient, namespace: string): Promise<string> {
  const name = `lockedcron-check-${randomUUID().slice(0, 8)}`;
  const container = {
    name: "check",
    image: "lockedcron-check",
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
  };
  const pod = {
    restartPolicy: "Never",
    securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    containers: [container],
  };
  const job = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, namespace },
    spec: { template: { spec: pod } },
  };
  await client.create(jobs, job, { dryRun: true, fieldValidation: "Strict" });
  return `a Job would be created in ${namespace}`;
}
