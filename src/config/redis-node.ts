/** One node of the file of --redis-config. */
import { isObject, present, type Fields, type Place } from "./fields.ts";
import { parseAddress } from "./redis.ts";
import type { Address, AddressNode, RedisNode, SentinelNode, TlsFiles } from "./redis.ts";

const LOGIN = ["username", "password", "passwordFile"] as const;
const SENTINEL_LOGIN = ["sentinelUsername", "sentinelPassword", "sentinelPasswordFile"] as const;
const ADDRESS = ["url", ...LOGIN, "tls"];
const SENTINEL = ["sentinels", "masterName", "name", ...LOGIN, "tls", "db"].concat(
  [...SENTINEL_LOGIN, "sentinelTls"],
  ["natMap", "waitReplicas"],
);
const TLS = ["caFile", "certFile", "keyFile", "serverName"];
const HOST_AND_PORT = /^[^\s/@]+:\d{1,5}$/;

/** @returns undefined when something is wrong that leaves nothing to go on with */
export function readNode(
  read: Fields,
  entry: unknown,
  at: string,
  position: number,
): RedisNode | undefined {
  if (typeof entry === "string") return addressNode(read, { at, fields: { url: entry } }, position);
  if (isObject(entry)) {
    const place = { at, fields: entry };
    if ("url" in entry) return addressNode(read, place, position);
    if ("sentinels" in entry || "masterName" in entry) return sentinelNode(read, place);
  }
  read.refuse(at, "is neither an address nor an object with url, or with sentinels and masterName");
  return undefined;
}

function addressNode(read: Fields, place: Place, position: number): AddressNode | undefined {
  const { at, fields } = place;
  read.names(place, ADDRESS);
  const found = readAddress(read, fields.url, `${at}.url`, "6379");
  const login = readLogin(read, place, LOGIN);
  const tls = readTls(read, place, "tls");
  if (found === undefined) return undefined;
  const { host, url, ...said } = found;
  if (tls !== undefined && !url.startsWith("rediss:")) {
    read.refuse(`${at}.tls`, "needs a url with rediss:// in front");
  }
  for (const name of LOGIN) {
    const inUrl = name === "passwordFile" ? said.password : said[name];
    if (inUrl === undefined || login[name] === undefined) continue;
    read.refuse(`${at}.${name}`, "is beside what the url says; keep one of them");
  }
  return { name: `${position}/${host}`, url, ...said, ...present({ ...login, tls }) };
}

function sentinelNode(read: Fields, place: Place): SentinelNode | undefined {
  const { at, fields } = place;
  read.names(place, SENTINEL);
  const masterName = read.word(place, "masterName");
  if (fields.masterName === undefined) {
    read.refuse(`${at}.masterName`, "is missing; write the name that the sentinels monitor it by");
  }
  const sentinels = readSentinels(read, place);
  const sentinelTls = readTls(read, place, "sentinelTls");
  if (sentinelTls !== undefined && sentinels.some((url) => !url.startsWith("rediss:"))) {
    read.refuse(`${at}.sentinelTls`, "needs sentinels with rediss:// in front");
  }
  const login = readLogin(read, place, SENTINEL_LOGIN);
  const rest = {
    ...readLogin(read, place, LOGIN),
    sentinelUsername: login.username,
    sentinelPassword: login.password,
    sentinelPasswordFile: login.passwordFile,
    db: read.whole(place, "db", 999),
    tls: readTls(read, place, "tls"),
    sentinelTls,
    natMap: readNatMap(read, place),
    waitReplicas: read.whole(place, "waitReplicas", 100),
  };
  const name = read.word(place, "name") ?? masterName;
  if (masterName === undefined || name === undefined) return undefined;
  return { name, masterName, sentinels, ...present(rest) };
}

function readSentinels(read: Fields, { at, fields }: Place): string[] {
  const given: unknown[] = Array.isArray(fields.sentinels) ? fields.sentinels : [];
  if (given.length === 0) {
    read.refuse(`${at}.sentinels`, "is no list of addresses; write those of all sentinels");
  }
  const urls = given.flatMap((entry, i) => {
    const where = `${at}.sentinels[${i}]`;
    const found = readAddress(read, entry, where, "26379");
    if (found === undefined) return [];
    if (found.username !== undefined || found.password !== undefined) {
      read.refuse(where, "has credentials in it; write sentinelUsername and sentinelPasswordFile");
    } else if (/:\d+\//.test(found.url)) {
      read.refuse(
        where,
        "has a path; sentinels have no databases, that of the master is db",
        entry,
      );
    }
    return [found.url];
  });
  const first = urls[0]?.split(":")[0];
  if (urls.some((url) => url.split(":")[0] !== first)) {
    read.refuse(`${at}.sentinels`, "mixes redis:// and rediss://; give all of them the same");
  }
  return urls;
}

function readAddress(
  { refuse }: Fields,
  value: unknown,
  at: string,
  port: string,
): Address | undefined {
  const parsed =
    typeof value === "string"
      ? parseAddress(value, port)
      : { problem: "is no address; write e.g. redis://redis-0:6379" };
  if ("value" in parsed) return parsed.value;
  // Behind an @ or without a host there may be a password, and that is not repeated.
  const open = typeof value !== "string" || /^[^@?#]*$/.test(value);
  refuse(at, parsed.problem, open ? value : undefined);
  return undefined;
}

function readLogin(
  read: Fields,
  place: Place,
  [user, password, file]: readonly [string, string, string],
) {
  if (place.fields[password] !== undefined && place.fields[file] !== undefined) {
    read.refuse(`${place.at}.${file}`, `does not go together with ${password}; keep one of them`);
  }
  return {
    username: read.word(place, user),
    password: read.secret(place, password),
    passwordFile: read.path(place, file, "password"),
  };
}

function readTls(read: Fields, { at, fields }: Place, name: string): TlsFiles | undefined {
  const value = fields[name];
  if (value === undefined) return undefined;
  const place = { at: `${at}.${name}`, fields: isObject(value) ? value : {} };
  if (!isObject(value)) {
    read.refuse(place.at, "is no object; write {caFile: ca.crt}, or {} for the usual CAs", value);
  }
  read.names(place, TLS);
  const { certFile, keyFile } = place.fields;
  if ((certFile === undefined) !== (keyFile === undefined)) {
    const [there, missing] =
      keyFile === undefined ? ["certFile", "keyFile"] : ["keyFile", "certFile"];
    read.refuse(`${place.at}.${there}`, `needs ${missing} beside it`);
  }
  return present({
    caFile: read.path(place, "caFile", "certificates (PEM)"),
    certFile: read.path(place, "certFile", "certificate (PEM)"),
    keyFile: read.path(place, "keyFile", "private key (PEM)"),
    serverName: read.word(place, "serverName"),
  });
}

function readNatMap({ refuse }: Fields, { at, fields }: Place): SentinelNode["natMap"] {
  const value = fields.natMap;
  if (value === undefined) return undefined;
  const map: Record<string, string> = {};
  for (const [from, to] of isObject(value) ? Object.entries(value) : [["", value] as const]) {
    if (HOST_AND_PORT.test(from) && typeof to === "string" && HOST_AND_PORT.test(to))
      map[from] = to;
    else {
      const message =
        'maps no "host:port" to another; write e.g. {"10.0.0.1:6379": "redis-a:6379"}';
      refuse(`${at}.natMap`, message, { [from]: to });
    }
  }
  return map;
}
