import { describe, expect, it } from "vitest";
import type { Condition, LockedCronJob } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { createTemplateCheck } from "../../src/controller/template-check.ts";
import { aClient, rejected } from "../builders/client.ts";
import { aLockedCronJob, at, NOON } from "../builders/objects.ts";
import { manualTime } from "./manual-time.ts";

const KEY = "team/report";
const ACCEPTED = { accepted: true, message: "the API server takes the Job that it renders" };

function setUp() {
  const time = manualTime(NOON);
  const calls: { name: string; options: unknown }[] = [];
  const events: string[] = [];
  const server: { answer: () => Promise<unknown> } = { answer: () => Promise.resolve({}) };
  const check = createTemplateCheck({
    client: aClient({
      create: (_: unknown, { metadata }: { metadata: { name: string } }, options: unknown) => {
        calls.push({ name: metadata.name, options });
        return server.answer();
      },
    }),
    jobs: resources.jobs,
    clock: time.clock,
    events: { event: (_, type, reason, message) => events.push(`${type} ${reason} ${message}`) },
  });
  return { time, calls, events, server, check };
}

function told(fields: Partial<Condition>): LockedCronJob {
  const condition: Condition = {
    type: "TemplateAccepted",
    status: "True",
    reason: "TemplateTaken",
    message: "told",
    lastTransitionTime: at(NOON),
    observedGeneration: 1,
    ...fields,
  };
  return { ...aLockedCronJob(), status: { conditions: [condition] } };
}

describe("a template", () => {
  it("is tried by a dry run, strictly, and once", async () => {
    const { calls, check } = setUp();
    expect(await check.verdict(KEY, aLockedCronJob())).toEqual(ACCEPTED);
    expect(await check.verdict(KEY, aLockedCronJob())).toEqual(ACCEPTED);
    expect(calls).toEqual([
      {
        name: "report-dry-run",
        options: { dryRun: true, fieldValidation: "Strict", priority: "low" },
      },
    ]);
    expect(check.recheckAt(KEY)).toBeUndefined();
  });

  it.each([
    ["was edited", { generation: 2 }],
    ["is a namesake's", { uid: "owner-2" }],
  ])("is tried again when it %s", async (_, metadata) => {
    const { calls, check } = setUp();
    await check.verdict(KEY, aLockedCronJob());
    await check.verdict(KEY, aLockedCronJob({}, metadata));
    expect(calls).toHaveLength(2);
  });

  it("that was accepted before a restart, as the status tells, is not tried again", async () => {
    const { calls, check } = setUp();
    expect(await check.verdict(KEY, told({}))).toEqual({ accepted: true, message: "told" });
    expect(calls).toEqual([]);
  });

  it.each<[string, Partial<Condition>]>([
    ["refused", { status: "False" }],
    ["accepted in another generation", { observedGeneration: 0 }],
  ])("that was %s, as the status tells, is tried", async (_, fields) => {
    const { calls, check } = setUp();
    expect(await check.verdict(KEY, told(fields))).toEqual(ACCEPTED);
    expect(calls).toHaveLength(1);
  });

  it("that is refused is tried again after a minute; its event comes once for each message", async () => {
    const { time, calls, events, server, check } = setUp();
    server.answer = () => rejected(403, "Forbidden");
    const verdict = await check.verdict(KEY, aLockedCronJob());
    expect(verdict).toMatchObject({ accepted: false });
    expect(verdict?.message).toContain("Forbidden");
    expect(check.recheckAt(KEY)).toBe(NOON + 60_000);
    await time.pass(59_999);
    await check.verdict(KEY, aLockedCronJob());
    expect(calls).toHaveLength(1);
    await time.pass(1);
    await check.verdict(KEY, aLockedCronJob());
    expect(calls).toHaveLength(2);
    expect(events).toEqual([
      `Warning TemplateRejected The Job of this template would be refused: ${verdict?.message}`,
    ]);
    server.answer = () => Promise.resolve({});
    await time.pass(60_000);
    expect(await check.verdict(KEY, aLockedCronJob())).toEqual(ACCEPTED);
  });

  it("whose dry run meets a Job of that name is well", async () => {
    const { server, check } = setUp();
    server.answer = () => rejected(409, "AlreadyExists");
    expect(await check.verdict(KEY, aLockedCronJob())).toEqual(ACCEPTED);
  });

  it.each([
    [429, "TooManyRequests"],
    [500, "InternalError"],
  ])("has no verdict when the API server says %d, and is tried again", async (status, reason) => {
    const { events, server, check } = setUp();
    server.answer = () => rejected(status, reason);
    expect(await check.verdict(KEY, aLockedCronJob())).toBeUndefined();
    expect(check.recheckAt(KEY)).toBe(NOON + 60_000);
    expect(events).toEqual([]);
  });
});
