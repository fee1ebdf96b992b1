/** The operator's process with faults from the environment; everything else is as in src/main.ts. */
import { runProcess } from "../../src/process.ts";
import { FAULTS_VARIABLE, faultSeams, type Faults } from "./faults.ts";

const faults = JSON.parse(process.env[FAULTS_VARIABLE] ?? "{}") as Faults;
process.exitCode = await runProcess(process.argv.slice(2), process.env, faultSeams(faults));
