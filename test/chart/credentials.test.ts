/** Passwords are made once, and replaced in steps between which both sides can read. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { runCli } from "../../src/cli/run.ts";
import { openCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";

const NAMESPACE = "credentials";
let cluster: ControlPlaneCluster;

interface Secret {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
}

beforeAll(async () => {
  cluster = await openCluster(inject("cluster").name);
  await cluster.kubectl(["create", "namespace", NAMESPACE]);
});
afterAll(async () => {
  await cluster.kubectl(["delete", "namespace", NAMESPACE, "--wait=false"]);
});

async function emptySecret(name: string): Promise<void> {
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: NAMESPACE } };
  await cluster.kubectl(["create", "--filename=-"], { stdin: JSON.stringify(secret) });
}

async function secretOf(name: string): Promise<Secret> {
  const args = ["get", "secret", name, "--namespace", NAMESPACE, "--output=json"];
  return JSON.parse(await cluster.kubectl(args)) as Secret;
}

/** Runs the command; `onStep` is called with the data that each step has left. */
async function run(
  name: string,
  argv: readonly string[],
  onStep: (data: Secret["data"]) => void = () => {},
) {
  let out = "";
  let error = "";
  const where = [`--kubeconfig=${cluster.kubeconfigPath}`, `--namespace=${NAMESPACE}`];
  const code = await runCli(["redis-password", ...where, `--secret=${name}`, ...argv], {
    stdin: (async function* () {})(),
    async out(text) {
      out += text;
      onStep((await secretOf(name)).data);
      return true;
    },
    error(text) {
      error += text;
    },
    now: Date.now,
    env: {},
  });
  return { code, out, error };
}

const decoded = (text = ""): string => Buffer.from(text, "base64").toString();

test("a key that is missing gets 256 random bits, one that is there stays", async () => {
  await emptySecret("fill");
  expect(await run("fill", [])).toEqual({ code: 0, out: "passwords made\n", error: "" });
  const first = (await secretOf("fill")).data;
  expect(decoded(first?.["password"])).toMatch(/^[\w-]{43}$/);
  const again = await run("fill", ["--keys=password,exporter-password"]);
  expect(again.out).toBe("passwords made\n");
  const second = (await secretOf("fill")).data;
  expect(second?.["password"]).toBe(first?.["password"]);
  expect(second?.["exporter-password"]).not.toBe(first?.["password"]);
  const third = await run("fill", ["--keys=password,exporter-password"]);
  expect(third.out).toBe("the passwords are there already\n");
  expect((await secretOf("fill")).data).toEqual(second);
});

test("two at once make one password", async () => {
  await emptySecret("race");
  const both = await Promise.all([run("race", []), run("race", [])]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  const made = (await secretOf("race")).data;
  await run("race", []);
  expect((await secretOf("race")).data).toEqual(made);
});

test("a rotation announces, replaces and forgets, once for each word", async () => {
  await emptySecret("rotate");
  await run("rotate", []);
  const old = (await secretOf("rotate")).data?.["password"];
  const steps: Secret["data"][] = [];
  const argv = ["--rotation=one", "--settle-seconds=0"];
  const { code, out } = await run("rotate", argv, (data) => steps.push(data));
  expect(code).toBe(0);
  expect(out.split("\n")).toEqual([
    "the passwords are there already",
    "passwords announced",
    "passwords replaced",
    "passwords done",
    'rotation "one" is done',
    "",
  ]);
  const [, announced, replaced, done] = steps;
  const next = announced?.["next-password"];
  expect(next).not.toBe(old);
  expect(announced).toEqual({ password: old, "next-password": next });
  expect(replaced).toEqual({ password: next, "previous-password": old });
  expect(done).toEqual({ password: next });

  await run("rotate", argv);
  expect((await secretOf("rotate")).data).toEqual({ password: next });
  await run("rotate", ["--rotation=two", "--settle-seconds=0"]);
  expect((await secretOf("rotate")).data?.["password"]).not.toBe(next);
});

test("a rotation that was interrupted comes to its end before the next begins", async () => {
  await emptySecret("resume");
  await run("resume", []);
  const annotations = [
    "lockedcron.io/redis-password-rotation=one",
    "lockedcron.io/redis-password-step=announced",
  ];
  await cluster.kubectl(["annotate", "secret", "resume", "-n", NAMESPACE, ...annotations]);
  const patch = JSON.stringify({ stringData: { "next-password": "announced-before" } });
  await cluster.kubectl(["patch", "secret", "resume", "-n", NAMESPACE, "--patch", patch]);
  const seen: string[] = [];
  await run("resume", ["--rotation=two", "--settle-seconds=0"], (data) =>
    seen.push(decoded(data?.["password"])),
  );
  expect(seen).toContain("announced-before");
  const { data, metadata } = await secretOf("resume");
  expect(metadata.annotations).toMatchObject({
    "lockedcron.io/redis-password-rotation": "two",
    "lockedcron.io/redis-password-step": "done",
  });
  expect(Object.keys(data ?? {})).toEqual(["password"]);
  expect(decoded(data?.["password"])).not.toBe("announced-before");
});

test("a Secret that is not there is one error, exit code 1", async () => {
  const { code, error } = await run("absent", []);
  expect(code).toBe(1);
  expect(error).toMatch(/^lockedcron redis-password: .*"absent" not found/);
});
