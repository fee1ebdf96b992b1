#!/usr/bin/env node
import { runProcess } from "./process.ts";

process.exitCode = await runProcess(process.argv.slice(2), process.env);
