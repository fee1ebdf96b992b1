/** Commands of the CLI that talk to a cluster, and the schedules of the spec, with an operator at work. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Job, LockedCronJob, PodTemplate } from "../../src/api/types.ts";
import {
  MANUAL_ANNOTATION,
  NAME_LABEL,
  SCHEDULE_NAMES_ANNOTATION,
  SCHEDULE_NAMES_ENV,
  TICK_ANNOTATION,
} from "../../src/api/names.ts";
import { leases, resourceType, type KubeClient, type KubeObject } from "../../src/kube/index.ts";
import { call } from "../cli/call.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { startReplica, type Replica } from "../harness/replica.ts";
import { startRedis, type RedisServer } from "../redis/server.ts";
import {
  clientOf,
  installCrd,
  lockedCronJobs,
  manifest,
  objectOf,
  type Manifest,
} from "./fixture.ts";

const jobs = resourceType<Job>("batch/v1", "Job", "jobs");

let cluster: ControlPlaneCluster;
let admin: KubeClient;
let redis: RedisServer;
let replica: Replica;

beforeAll(async () => {
  cluster = await startCluster({ mode: "control-plane", log: console.error });
  admin = clientOf(cluster.adminKubeconfig);
  await installCrd(cluster);
  for (const name of ["lockedcron-system", "team"]) {
    await cluster.kubectl(["create", "namespace", name]);
  }
  redis = await startRedis();
  replica = await startReplica({
    name: "replica-a",
    kubeconfig: cluster.kubeconfigPath,
    redis: [redis.url],
  });
  await replica.ready();
});
afterAll(async () => {
  await replica?.stop();
  await admin?.[Symbol.asyncDispose]();
  await redis?.stop();
  await cluster?.stop();
});

/** Jobs are made suspended, so that the cluster has nothing to do with them. */
async function create(name: string, change: (spec: Manifest["spec"]) => void): Promise<void> {
  const object = manifest((m) => {
    m.metadata.name = name;
    m.spec.jobTemplate.spec.suspend = true;
    change(m.spec);
  });
  await admin.create(lockedCronJobs, objectOf(lockedCronJobs, object, "team"));
}

const stateOf = async (name: string): Promise<LockedCronJob> =>
  (await admin.get(lockedCronJobs, { namespace: "team", name })) as unknown as LockedCronJob;

/** Waits for the status to say so. */
async function statusOf(
  name: string,
  holds: (status: NonNullable<LockedCronJob["status"]>) => boolean,
): Promise<NonNullable<LockedCronJob["status"]>> {
  let status: LockedCronJob["status"];
  await until(`${name} has the status wanted`, 30_000, async () => {
    ({ status } = await stateOf(name));
    return status !== undefined && holds(status);
  });
  return status ?? {};
}

async function jobsOf(name: string): Promise<Job[]> {
  const labelSelector = `${NAME_LABEL}=${name}`;
  return (await admin.list(jobs, { namespace: "team", labelSelector })).items;
}

const command = (...argv: string[]) =>
  call([...argv, "--kubeconfig", cluster.kubeconfigPath], "", Date.now);

describe("a schedule", () => {
  test("with seconds runs at them, under names that count seconds", async () => {
    await create("seconds", (spec) => {
      spec.schedule = "*/2 * * * * *";
      spec.concurrencyPolicy = "Allow";
    });
    await until("two runs", 30_000, async () => (await jobsOf("seconds")).length >= 2);
    for (const { metadata } of await jobsOf("seconds")) {
      const second = Number(metadata.name.slice("seconds-".length));
      expect(second % 2).toBe(0);
      expect(Date.parse(metadata.annotations?.[TICK_ANNOTATION] ?? "")).toBe(second * 1000);
    }
    await command("suspend", "seconds", "-n", "team");
  });

  test("of an interval below a minute runs each time, under names that count seconds", async () => {
    await create("often", (spec) => {
      spec.schedule = "@every 2s";
      spec.concurrencyPolicy = "Allow";
    });
    await until("three runs", 30_000, async () => (await jobsOf("often")).length >= 3);
    const seconds = (await jobsOf("often"))
      .map(({ metadata }) => Number(metadata.name.slice("often-".length)))
      .toSorted((a, b) => a - b);
    // A tick may be missed on a machine that is busy; by minutes two of three would have had one name.
    const gaps = seconds.slice(1).map((second, i) => second - (seconds[i] ?? 0));
    expect(gaps.filter((gap) => gap < 2 || gap % 2 !== 0)).toEqual([]);
    await command("suspend", "often", "-n", "team");
  });

  test("of several is shown with numbers for H, and each with its zone", async () => {
    await create("several", (spec) => {
      delete spec.schedule;
      spec.timeZone = "Europe/Berlin";
      spec.schedules = [
        { schedule: "H 3 * * *" },
        { schedule: "0 9 * * *", timeZone: "Asia/Tokyo", name: "tokyo" },
      ];
    });
    const status = await statusOf("several", (s) => s.resolvedSchedules !== undefined);
    expect(status.resolvedSchedules).toEqual([
      { schedule: expect.stringMatching(/^[1-5]?\d 3 \* \* \*$/), timeZone: "Europe/Berlin" },
      { schedule: "0 9 * * *", timeZone: "Asia/Tokyo", name: "tokyo" },
    ]);
    expect(status.nextScheduleTimes).toHaveLength(5);
    expect((await command("status", "several", "-n", "team")).out).toContain("tokyo: 0 9 * * *");
  });

  test("of several, by their names: the Job, its pods and the decision say whose tick it is", async () => {
    await create("named", (spec) => {
      delete spec.schedule;
      spec.concurrencyPolicy = "Allow";
      spec.schedules = [
        { schedule: "*/2 * * * * *", name: "even" },
        { schedule: "* * * * * *", name: "each" },
      ];
    });
    const status = await statusOf("named", (s) => (s.decisions?.length ?? 0) >= 2);
    for (const { message, tick } of status.decisions ?? []) {
      const names = Date.parse(tick) % 2_000 === 0 ? "even, each" : "each";
      expect(message).toMatch(new RegExp(`^Job named-\\d+ created \\(schedule ${names}\\)$`));
    }
    for (const { metadata, spec } of await jobsOf("named")) {
      const names = Date.parse(metadata.annotations?.[TICK_ANNOTATION] ?? "") % 2_000;
      const { template } = spec as { template: PodTemplate };
      const said = names === 0 ? "even,each" : "each";
      expect(metadata.annotations?.[SCHEDULE_NAMES_ANNOTATION]).toBe(said);
      expect(template.metadata?.annotations?.[SCHEDULE_NAMES_ANNOTATION]).toBe(said);
      expect(template.spec.containers[0]?.env).toContainEqual({
        name: SCHEDULE_NAMES_ENV,
        value: said,
      });
    }
    await command("suspend", "named", "-n", "team");
  });

  test("that clocks play tricks on says so, and dstPolicy mends it", async () => {
    await create("tricks", (spec) => {
      spec.schedule = "0 0 * * 0";
      spec.timeZone = "Asia/Beirut";
    });
    const safe = (s: NonNullable<LockedCronJob["status"]>) =>
      s.conditions?.find(({ type }) => type === "ClockChangeSafe");
    const status = await statusOf("tricks", (s) => safe(s) !== undefined);
    expect(safe(status)).toMatchObject({ status: "False", reason: "RunsAffected" });
    expect(status.tzdata).toMatch(/^20\d\d[a-z]$/);
  });

  test("that the calendar alone can refuse is a condition and an event", async () => {
    await create("wrong", (spec) => (spec.schedule = "H(9-1) * * * *"));
    const status = await statusOf("wrong", (s) => s.conditions !== undefined);
    expect(status.conditions).toContainEqual(
      expect.objectContaining({
        type: "ScheduleValid",
        status: "False",
        reason: "UnparseableSchedule",
      }),
    );
  });

  test("of the past, by its window, never fires and is ready", async () => {
    await create("past", (spec) => {
      spec.schedule = "* * * * *";
      spec.notAfter = "2020-01-01T00:00:00Z";
    });
    const status = await statusOf("past", (s) => s.conditions !== undefined);
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ type: "ScheduleValid", status: "True", reason: "NeverFires" }),
    );
  });

  test("with jitter starts late by what its status announced", async () => {
    await create("jitter", (spec) => {
      spec.schedule = "*/10 * * * * *";
      spec.jitterSeconds = 9;
      spec.concurrencyPolicy = "Allow";
    });
    const { nextScheduleTimes = [] } = await statusOf("jitter", (s) => !!s.nextScheduleTimes);
    const announced = nextScheduleTimes.map((time) => Date.parse(time));
    // Some tick of five that is put off.
    const due = announced.find((at) => at % 10_000 !== 0) ?? NaN;
    const tick = Math.floor(due / 10_000) * 10;
    const created = await replica.line(
      `the tick ${tick} is claimed`,
      (line) => line.key === "team/jitter" && Date.parse(line.tick ?? "") === tick * 1000,
      90_000,
    );
    expect(Date.parse(created.time ?? "")).toBeGreaterThanOrEqual(due);
    await until("its run", 30_000, async () =>
      (await jobsOf("jitter")).some(({ metadata }) => metadata.name === `jitter-${tick}`),
    );
    await command("suspend", "jitter", "-n", "team");
  });
});

describe("lockedcron", () => {
  test("list shows what comes next, soonest first, and what is wrong", async () => {
    const { code, out } = await command("list", "--namespace=team");
    expect(code).toBe(0);
    const rows = out
      .trim()
      .split("\n")
      .map((line) => line.split(/ {3,}/));
    expect(rows[0]).toEqual("NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST NEXT READY".split(" "));
    const several = rows.find(([name]) => name === "several");
    expect(several?.slice(1, 3)).toEqual(["H 3 * * *; 0 9 * * *", "Europe/Berlin"]);
    expect(rows.find(([name]) => name === "wrong")?.at(-1)).toBe("UnparseableSchedule");
    const wrong = await command("list", "-A", "--not-ready");
    expect(wrong.out.trim().split("\n").slice(1)).toEqual([
      expect.stringMatching(/^team +wrong +H\(9-1\)/),
    ]);
  });

  test("list of a namespace without any says so", async () => {
    expect(await command("list", "-n", "default")).toEqual({
      code: 0,
      out: "",
      error: "No LockedCronJobs found in namespace default.\n",
    });
  });

  test("trigger starts one run for an id, also while suspended; backfill runs past ticks again", async () => {
    await create("asked", (spec) => Object.assign(spec, { schedule: "0 0 * * *", suspend: true }));
    const asked = await command("trigger", "asked", "-n", "team", "--id=one");
    expect(asked).toEqual({ code: 0, out: "team/asked: run asked for, id one\n", error: "" });
    await statusOf("asked", (s) => s.lastTrigger === "one" && s.activeCount === 1);
    await command("trigger", "asked", "-n", "team", "--id=one");
    const range = ["--from=2026-01-01T00:00:00Z", "--to=2026-01-02T00:00:00Z", "--policy=Allow"];
    const { code, out } = await command("backfill", "asked", "-n", "team", "--id=jan", ...range);
    expect([code, out]).toEqual([0, "team/asked: backfill asked for, id jan\n"]);
    await statusOf("asked", (s) => s.backfill?.cursor === "2026-01-02T00:00:00Z");
    const manual = (await jobsOf("asked")).map(
      (job) => job.metadata.annotations?.[MANUAL_ANNOTATION],
    );
    expect(manual.map(String).toSorted((a, b) => a.localeCompare(b))).toEqual([
      "backfill/jan",
      "backfill/jan",
      "trigger/one",
    ]);
  });

  test.each([
    [["trigger"], ["no name is given"]],
    [["trigger", "a", "b"], ['"b": one name at a time']],
    [
      ["backfill", "a", "--to=noon", "--policy=Skip"],
      [
        "--from: is required, e.g. 2026-01-31T00:00:00Z",
        '--to: "noon" is no RFC 3339 time, e.g. 2026-01-31T00:00:00Z',
        '--policy: "Skip" is neither Forbid nor Allow',
      ],
    ],
    [
      ["backfill", "a", "--from=2026-01-02T00:00:00Z", "--to=2026-01-01T00:00:00Z"],
      ["--to: is before --from"],
    ],
  ])("%j names everything that is wrong", async (argv, problems) => {
    const { code, error } = await command(...argv);
    expect(code).toBe(2);
    for (const problem of problems) expect(error).toContain(problem);
  });

  test("status shows times, lock, runs and why ticks ran", async () => {
    await statusOf("seconds", (s) => (s.decisions ?? []).length > 0);
    const { code, out } = await command("status", "seconds", "-n", "team");
    expect(code).toBe(0);
    expect(out).toMatch(/^Name: +team\/seconds\nSchedule: +\*\/2 \* \* \* \* \* \(UTC\)\n/);
    expect(out).toMatch(/\nRuns:\n {2}seconds-\d+ +Running +\d+s\n/);
    expect(out).toMatch(/\nDecisions:\n {2}\S+Z +\S+Z +Launched +Due/);
    const json = await command("status", "seconds", "-n", "team", "-o", "json");
    expect(JSON.parse(json.out)).toMatchObject({ observedGeneration: expect.any(Number) });
  });

  test("suspend and resume set the field, once, and name what is not there", async () => {
    expect(await command("suspend", "several", "nobody", "-n", "team")).toEqual({
      code: 1,
      out: "team/several: suspended\n",
      error: expect.stringMatching(/^lockedcron suspend: .*"?nobody"? not found/),
    });
    const suspended = await stateOf("several");
    expect(suspended.spec.suspend).toBe(true);
    expect((await command("suspend", "several", "-n", "team")).out).toBe(
      "team/several: suspended already\n",
    );
    expect((await command("resume", "several", "-n", "team")).out).toBe(
      "team/several: resumed; what was missed meanwhile is caught up as catchUp says\n",
    );
    expect((await stateOf("several")).spec.suspend).toBe(false);
  });

  test("says what a cluster lacks, in one line", async () => {
    const missing = await command("status", "nobody", "-n", "team");
    expect(missing).toMatchObject({ code: 1, out: "" });
    expect(missing.error).toMatch(/^lockedcron status: .*nobody.*not found[^\n]*\n$/);
  });
});

test("an operator that starts anew writes nothing to objects that have not changed", async () => {
  const namespace = "still";
  await cluster.kubectl(["create", "namespace", namespace]);
  const make = async (name: string, change: (spec: Manifest["spec"]) => void): Promise<void> => {
    const object = manifest((m) => {
      m.metadata.name = name;
      m.spec.schedule = "0 0 31 2 *";
      change(m.spec);
    });
    await admin.create(lockedCronJobs, objectOf(lockedCronJobs, object, namespace));
  };
  const isTold = async (
    name: string,
    holds: (status: NonNullable<LockedCronJob["status"]>) => boolean,
  ): Promise<void> => {
    await until(`${namespace}/${name} is told of`, 30_000, async () => {
      const { status } = await admin.get(lockedCronJobs, { namespace, name });
      return status !== undefined && holds(status as NonNullable<LockedCronJob["status"]>);
    });
  };
  for (let i = 0; i < 5; i++) await make(`never-${i}`, () => {});
  await make("suspended", (spec) => (spec.suspend = true));
  await make("wrong", (spec) => (spec.schedule = "H(9-1) * * * *"));
  await make("active", (spec) => (spec.jobTemplate.spec.suspend = true));
  await make("done", (spec) => {
    Object.assign(spec.jobTemplate.spec, { completions: 0, parallelism: 0 });
  });
  for (const name of ["active", "done"]) {
    expect((await command("trigger", name, "-n", namespace)).code).toBe(0);
  }
  // All that there is to say of them is said, and their Jobs are let go.
  const names = ["never-0", "never-1", "never-2", "never-3", "never-4", "suspended", "wrong"];
  for (const name of [...names, "active", "done"]) {
    await isTold(name, ({ conditions = [] }) =>
      conditions.some(({ type }) => type === "TemplateAccepted" || type === "Stalled"),
    );
  }
  await isTold("done", ({ decisions, activeCount }) => {
    return decisions?.at(-1)?.decision === "Finished" && activeCount === 0;
  });
  await isTold("active", ({ active }) => active?.[0]?.uid !== undefined);
  await until(
    "no Job is held, and its controller has said what it has to say",
    30_000,
    async () => {
      const { items } = await admin.list(jobs, { namespace });
      return items.every(
        ({ metadata, status }) =>
          metadata.finalizers === undefined &&
          status?.conditions?.some(({ type }) => type === "Suspended" || type === "Complete"),
      );
    },
  );
  const versions = async (): Promise<Record<string, string | undefined>> => {
    const found: Record<string, string | undefined> = {};
    for (const type of [lockedCronJobs, leases, jobs]) {
      for (const { metadata } of (await admin.list<KubeObject>(type, { namespace })).items) {
        found[`${type.plural}/${metadata.name}`] = metadata.resourceVersion;
      }
    }
    return found;
  };
  // Those of the tests before run by the minute or the second.
  await cluster.kubectl(["delete", "lockedcronjobs", "--all", "--namespace", "team"]);
  await replica.stop();
  const before = await versions();
  // How long its lock is valid moves on, and is told now and then.
  delete before["lockedcronjobs/active"];
  expect(Object.keys(before)).toHaveLength(8 + 9 + 2);
  replica = await startReplica({
    name: "replica-a",
    kubeconfig: cluster.kubeconfigPath,
    redis: [redis.url],
  });
  await replica.ready();
  const sum = async (metric: RegExp): Promise<number> => {
    const lines = (await replica.metrics()).split("\n").filter((line) => metric.test(line));
    return lines.reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  };
  await until("each has been looked at", 30_000, async () => {
    return (await sum(/^lockedcron_workqueue_work_seconds_count/)) >= 9;
  });
  // A status is looked at after its object: this one's comes last.
  await make("probe", () => {});
  await isTold("probe", ({ conditions }) => conditions !== undefined);
  expect(await versions()).toMatchObject(before);
  // A write that changes nothing leaves the version as it was: they are counted, too. The probe has a few of its own, and a run
  // that is active one for how long its lock is valid.
  expect(await sum(/kube_requests_total\{verb="patch",resource="lockedcronjobs"/)).toBeLessThan(5);
});
