#!/usr/bin/env node
import { once } from "node:events";
import { runCli } from "./run.ts";

let readerGone = false;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // `lockedcron next … | head -1`: whoever read has seen enough.
  if (error.code !== "EPIPE") throw error;
  readerGone = true;
});

process.exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  async out(text) {
    if (readerGone) return false;
    if (!process.stdout.write(text)) {
      await Promise.race([once(process.stdout, "drain"), once(process.stdout, "close")]).catch(
        () => undefined,
      );
    }
    return !readerGone;
  },
  error: (text) => void process.stderr.write(text),
  now: Date.now,
  env: process.env,
});
