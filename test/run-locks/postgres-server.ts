/** A real PostgreSQL of Debian's package, in a folder of its own, and an image with its psql for pods. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, copyFile, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ensureImage, fillBusybox } from "../cluster/images.ts";
import { ensureProgram, findProgram } from "../cluster/packages.ts";
import { until } from "../cluster/proc.ts";
import { run } from "../cluster/run.ts";
import { freePort } from "../redis/server.ts";

export interface PostgresServer extends AsyncDisposable {
  port: number;
  /** Runs SQL as the superuser; rows as text, columns by "|". */
  sql(text: string): Promise<string>;
}

/** Debian's programs are in a folder per version, of which the newest counts; psql on PATH is a wrapper. */
async function binDir(): Promise<string> {
  const root = "/usr/lib/postgresql";
  const versions = async () => (await readdir(root).catch(() => [])).map(Number).filter(Boolean);
  if ((await versions()).length === 0)
    await ensureProgram("postgresql", console.error).catch(() => "");
  const newest = Math.max(...(await versions()));
  if (!Number.isFinite(newest)) throw new Error("PostgreSQL is missing: install postgresql");
  return join(root, String(newest), "bin");
}

/** Refuses to run as root, so it runs as the user that Debian made for it. */
export async function startPostgres(address: string): Promise<PostgresServer> {
  const bin = await binDir();
  const [uid, gid] = (
    await Promise.all(["-u", "-g"].map((flag) => run("id", [flag, "postgres"])))
  ).map(Number);
  const dir = await mkdtemp(join(tmpdir(), "pg-"));
  await chown(dir, uid ?? 0, gid ?? 0);
  const as = { uid: uid ?? 0, gid: gid ?? 0, cwd: dir };
  const data = join(dir, "data");
  const init = spawn(join(bin, "initdb"), ["-D", data, "--auth=trust", "-U", "postgres", "-N"], {
    ...as,
    stdio: "ignore",
  });
  const [code] = (await once(init, "exit")) as [number];
  if (code !== 0) throw new Error(`initdb ended with ${code}`);
  const port = await freePort();
  const settings = [
    "fsync=off",
    `listen_addresses=127.0.0.1,${address}`,
    `unix_socket_directories=${dir}`,
  ];
  await run("sh", ["-c", `echo "host all all 0.0.0.0/0 trust" >> ${join(data, "pg_hba.conf")}`]);
  const server = spawn(
    join(bin, "postgres"),
    ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])],
    { ...as, stdio: "ignore" },
  );
  const exited = once(server, "exit");
  const sql = async (text: string): Promise<string> => {
    const connection = ["-h", "127.0.0.1", "-p", String(port), "-U", "postgres"];
    return (await run(join(bin, "psql"), [...connection, "-qAtc", text])).trim();
  };
  await until("PostgreSQL answers", 60_000, () =>
    sql("SELECT 1").then(
      () => true,
      () => undefined,
    ),
  );
  return {
    port,
    sql,
    async [Symbol.asyncDispose]() {
      server.kill("SIGQUIT");
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** psql with the libraries it needs, under the name that the example asks for. */
export async function psqlImage(): Promise<string> {
  const psql = join(await binDir(), "psql");
  const busybox = await findProgram("busybox");
  if (busybox === undefined) throw new Error("busybox is missing");
  const linked = await run("ldd", [psql]);
  const libraries = [...linked.matchAll(/(\/\S+) \(0x/g)].map(([, file]) => file ?? "");
  return ensureImage({
    name: "psql",
    tags: ["docker.io/library/postgres:17"],
    entrypoint: [],
    command: ["psql"],
    inputs: [linked.replaceAll(/0x[0-9a-f]+/g, ""), busybox],
    async fill(root) {
      await fillBusybox(root, busybox);
      for (const [from, to] of [[psql, "usr/bin/psql"], ...libraries.map((file) => [file, file])]) {
        await mkdir(join(root, dirname(to ?? "")), { recursive: true });
        await copyFile(from ?? "", join(root, to ?? ""));
      }
    },
  });
}
