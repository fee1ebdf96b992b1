#!/usr/bin/env node
import { enableCompileCache } from "node:module";

// ORDER: before anything else is loaded. A restarted replica then starts in half the CPU time; where the folder for
// temporary files is read-only nothing is kept, and nothing is lost.
enableCompileCache();
const { runProcess } = await import("./process.ts");

process.exitCode = await runProcess(process.argv.slice(2), process.env);
