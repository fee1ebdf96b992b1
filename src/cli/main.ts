#!/usr/bin/env node
import { runCli } from "./run.ts";

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // `lockedcron next … | head -1`: whoever read has seen enough. A full disk is another matter.
  if (error.code === "EPIPE") return;
  process.stderr.write(`lockedcron: standard output: ${error.message}\n`);
  process.exitCode = 1;
});

const exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  out: (text) =>
    new Promise((resolve) => {
      process.stdout.write(text, (error) => resolve(!error));
    }),
  error: (text) => void process.stderr.write(text),
  now: Date.now,
  env: process.env,
});
if (exitCode !== 0) process.exitCode = exitCode;
