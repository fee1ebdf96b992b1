/** The list of nodes and the one before it, from addresses or from the file. */
import { present } from "./fields.ts";
import type { Checked } from "./files.ts";
import { flagOf } from "./option.ts";
import { ONE_LIST, REDIS_REQUIRED, REDIS_UNUSED, withShared } from "./redis.ts";
import type { RedisNode } from "./redis.ts";
import { readRedisFile } from "./redis-file.ts";

export interface RedisLists {
  redis: readonly RedisNode[];
  redisPrevious?: readonly RedisNode[];
}

/** Complete: every node with its credentials and TLS. What is wrong goes to `problems`. */
export function readLists({ values, given, readFile, problems }: Checked): RedisLists {
  const refuse = (field: "redis" | "redisPrevious" | "redisConfig", message: string) =>
    problems.push({ field: given[field]?.source ?? flagOf(field), message });

  const path = values.redisConfig;
  if (values.lockBackend !== "redis") {
    if (given.redis !== undefined) refuse("redis", REDIS_UNUSED);
    if (path !== undefined) refuse("redisConfig", REDIS_UNUSED);
    return { redis: [] };
  }
  if (path === undefined && given.redis === undefined) refuse("redis", REDIS_REQUIRED);
  if (path !== undefined && given.redis !== undefined) refuse("redis", ONE_LIST);
  const source = given.redisConfig?.source ?? "--redis-config";
  const file = path === undefined ? undefined : readRedisFile({ path, source, readFile }, problems);
  if (file?.previousNodes !== undefined && given.redisPrevious !== undefined) {
    refuse("redisPrevious", "is in the file of --redis-config, too; keep one of them");
  }

  const shared = {
    ...present({
      username: values.redisUsername,
      password: values.redisPassword,
      passwordFile: values.redisPasswordFile,
    }),
    tls: present({
      caFile: values.redisCaFile,
      certFile: values.redisCertFile,
      keyFile: values.redisKeyFile,
    }),
  };
  const previous = file?.previousNodes ?? values.redisPrevious;
  return {
    redis: (file?.nodes ?? values.redis ?? []).map((node) => withShared(node, shared)),
    ...(previous !== undefined && {
      redisPrevious: previous.map((node) => withShared(node, shared)),
    }),
  };
}
