/** The example that fences a table, against a real PostgreSQL; and a zombie pod, which it refuses. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { LockedCronJob } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { until } from "../cluster/proc.ts";
import { psqlImage, startPostgres, type PostgresServer } from "./postgres-server.ts";
import { NAMESPACE, openScene, PATIENCE_MS, type Scene } from "./scene.ts";

let scene: Scene;
let postgres: PostgresServer;
beforeAll(async () => {
  scene = await openScene();
  await scene.cluster.loadImage(await psqlImage());
  // The host's end of the cable that all nodes hang on.
  const host = (scene.cluster.nodes[0]?.address ?? "").replace(/\d+$/, "254");
  postgres = await startPostgres(host);
  await postgres.sql(
    `CREATE TABLE book (id text PRIMARY KEY, entries bigint NOT NULL, token bigint NOT NULL);
     CREATE TABLE entry (run_id text PRIMARY KEY, token bigint NOT NULL);
     CREATE TABLE tried (run_id text, token bigint, at timestamptz DEFAULT clock_timestamp());
     INSERT INTO book VALUES ('main', 0, 0)`,
  );
  const connection = {
    PGHOST: host,
    PGPORT: String(postgres.port),
    PGUSER: "postgres",
    PGDATABASE: "postgres",
    PGCONNECT_TIMEOUT: "2",
  };
  const literals = Object.entries(connection).map(
    ([name, value]) => `--from-literal=${name}=${value}`,
  );
  await scene.cluster.kubectl([
    "-n",
    NAMESPACE,
    "create",
    "secret",
    "generic",
    "books",
    ...literals,
  ]);
});
afterAll(async () => {
  await postgres?.[Symbol.asyncDispose]();
  await scene?.[Symbol.asyncDispose]();
});

const EXAMPLE = fileURLToPath(new URL("../../examples/fencing/postgres.yaml", import.meta.url));
const [interest, fees] = parseAllDocuments(readFileSync(EXAMPLE, "utf8")).map(
  (document) => document.toJS() as LockedCronJob,
) as [LockedCronJob, LockedCronJob];

/** The example as it is, but for the namespace, the schedule and what `change` does to its script. */
async function apply(object: LockedCronJob, change = (script: string) => script): Promise<void> {
  const copy = structuredClone(object);
  copy.metadata.namespace = NAMESPACE;
  copy.spec.schedule = "@every 1s";
  const [container] = copy.spec.jobTemplate.spec.template.spec.containers;
  const args = container as unknown as { args: string[] };
  args.args = args.args.map(change);
  await scene.client.create(resources.lockedCronJobs, copy, { timeoutMs: 60_000 });
}

async function suspend(name: string): Promise<void> {
  const body = { spec: { suspend: true } };
  await scene.client.patch(
    resources.lockedCronJobs,
    { namespace: NAMESPACE, name },
    { type: "merge", body },
    { timeoutMs: 60_000 },
  );
}

/** Books again and again, and says each time that it tries: what the zombie of a real program does. */
const stubborn = (script: string): string => `
  trap '' TERM
  while :; do
    psql -q -c "INSERT INTO tried VALUES ('$LOCKEDCRON_RUN_ID', $LOCKEDCRON_TOKEN)"
    ${script
      .trim()
      .split("\n")
      .join("\n    ")
      .replaceAll(/^ {4}SQL$/gm, "SQL")}
    sleep 0.2
  done`;

it("a run that was force-deleted on a node that is cut off can book nothing once another has", async () => {
  await apply(interest, stubborn);
  const zombie = await scene.running("interest");
  await suspend("interest");
  const { run } = scene.runs("interest")[0]!;
  await until("it has booked", PATIENCE_MS, async () =>
    (await postgres.sql(`SELECT token FROM entry WHERE run_id = '${run.runId}'`)) !== ""
      ? true
      : undefined,
  );
  // The next ones try the update alone: an entry of the same run is refused by the unique index.
  await postgres.sql(`DELETE FROM entry`);
  const node = scene.cluster.nodes.find(({ name }) => name === zombie.object.spec.nodeName);
  const kubectl = (...args: string[]) => scene.cluster.kubectl(["-n", NAMESPACE, ...args]);
  // ORDER: before it is cut off. Until it is seen to be so, the next run's pod might be sent there and wait for ever.
  await kubectl("cordon", node?.name ?? "");
  await node?.cutOff();
  await kubectl("delete", "job", run.jobName, "--wait=false");
  await kubectl("delete", "pod", zombie.object.metadata.name, "--force", "--grace-period=0");
  await scene.over("interest");

  await apply(fees);
  await until("another run has booked", PATIENCE_MS, async () =>
    (await postgres.sql(`SELECT count(*) FROM entry WHERE token > ${run.token}`)) !== "0"
      ? true
      : undefined,
  );
  await suspend("fees");
  await postgres.sql(`DELETE FROM entry WHERE token <= ${run.token}`);
  const healed = await postgres.sql("SELECT clock_timestamp()");
  await node?.heal();
  await kubectl("uncordon", node?.name ?? "");
  await until("the zombie has tried", PATIENCE_MS, async () =>
    Number(
      await postgres.sql(
        `SELECT count(*) FROM tried WHERE run_id = '${run.runId}' AND at > '${healed}'`,
      ),
    ) >= 2
      ? true
      : undefined,
  );
  const booked = await postgres.sql(`SELECT count(*) FROM entry WHERE run_id = '${run.runId}'`);
  expect(booked).toBe("0");
  const token = Number(await postgres.sql("SELECT token FROM book"));
  expect(token).toBeGreaterThan(run.token);
});
