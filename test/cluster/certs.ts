import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError, codeOf } from "./errors.ts";
import { run } from "./run.ts";

/** A certificate and its key, as files and as PEM text. */
export interface KeyPair {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/** What a leaf certificate says: `user` and `groups` are what the API server authenticates. */
export interface Subject {
  readonly user: string;
  readonly groups?: readonly string[];
  /** Addresses and DNS names, when it also serves. */
  readonly hosts?: readonly string[];
}

/** Certificates of one cluster, all signed by the CA in its folder. */
export interface Certificates {
  readonly caFile: string;
  readonly caKeyFile: string;
  readonly ca: string;
  /** Issues `<file>.crt` and `<file>.key`; a pair that is already there is read again. */
  issue(file: string, subject: Subject): Promise<KeyPair>;
}

const DAYS = "825";
const CONFIG = "[req]\ndistinguished_name = dn\ndefault_md = sha256\n[dn]\n";

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

async function openssl(args: readonly string[]): Promise<void> {
  try {
    await run("openssl", args);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new ClusterError("openssl not found: apt-get install openssl (3.0 or newer)");
  }
}

/** Escapes what separates the parts of openssl's -subj. */
const part = (text: string): string => text.replaceAll(/[\\/+]/g, "\\$&");

function subjectName({ user, groups = [] }: Subject): string {
  return [...groups.map((group) => `/O=${part(group)}`), `/CN=${part(user)}`].join("");
}

function altNames(hosts: readonly string[]): string {
  return hosts.map((host) => (/^[\d.]+$|:/.test(host) ? `IP:${host}` : `DNS:${host}`)).join(",");
}

const extensions = (list: readonly string[]): string[] => list.flatMap((text) => ["-addext", text]);

async function read(base: string): Promise<KeyPair> {
  const [certFile, keyFile] = [`${base}.crt`, `${base}.key`];
  const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
  return { certFile, keyFile, cert, key };
}

/** Opens the certificate folder of a cluster, making its CA when there is none yet. */
export async function openCertificates(dir: string): Promise<Certificates> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const config = join(dir, "openssl.cnf");
  const ca = join(dir, "ca");
  const issued = new Map<string, Promise<KeyPair>>();
  const make = async (base: string, extra: readonly string[]): Promise<KeyPair> => {
    const files = ["-keyout", `${base}.key`, "-out", `${base}.crt`, "-days", DAYS];
    await openssl(["req", "-x509", "-config", config, ...NEW_KEY, ...files, ...extra]);
    return read(base);
  };
  const readOrMake = async (base: string, extra: readonly string[]): Promise<KeyPair> => {
    try {
      return await read(base);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
      return make(base, extra);
    }
  };
  await writeFile(config, CONFIG);
  const caPair = await readOrMake(
    ca,
    ["-subj", "/CN=lockedcron-test-ca"].concat(
      extensions([
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=critical,keyCertSign,cRLSign,digitalSignature",
      ]),
    ),
  );
  const issue = (file: string, subject: Subject): Promise<KeyPair> => {
    const usage = ["clientAuth", ...(subject.hosts ? ["serverAuth"] : [])].join(",");
    const signer = ["-CA", caPair.certFile, "-CAkey", caPair.keyFile];
    const said = extensions([
      "basicConstraints=critical,CA:FALSE",
      "keyUsage=critical,digitalSignature,keyEncipherment",
      `extendedKeyUsage=${usage}`,
      ...(subject.hosts ? [`subjectAltName=${altNames(subject.hosts)}`] : []),
    ]);
    return readOrMake(join(dir, file), [...signer, "-subj", subjectName(subject), ...said]);
  };
  return {
    caFile: caPair.certFile,
    caKeyFile: caPair.keyFile,
    ca: caPair.cert,
    issue: (file, subject) => {
      const pair = issued.get(file) ?? issue(file, subject);
      issued.set(file, pair);
      return pair;
    },
  };
}

/** A new key and a request to sign a client certificate for it, both as PEM text. */
export async function requestCertificate(
  base: string,
  subject: Subject,
): Promise<{ request: string; key: string }> {
  const config = `${base}.cnf`;
  await writeFile(config, CONFIG);
  const files = ["-keyout", `${base}.key`, "-out", `${base}.csr`];
  const name = ["-subj", subjectName(subject)];
  await openssl(["req", "-new", "-config", config, ...NEW_KEY, ...files, ...name]);
  const [request, key] = await Promise.all(
    ["csr", "key"].map((end) => readFile(`${base}.${end}`, "utf8")),
  );
  if (request === undefined || key === undefined)
    throw new ClusterError("openssl wrote no request");
  return { request, key };
}
