/** `make generate`: runs every generator of the project. */
import { generators } from "./ci/checks.ts";
import { runCommand } from "./ci/command.ts";

for (const file of generators()) {
  const { code } = await runCommand(["node", file]);
  if (code === 0) continue;
  console.error(`${file} failed`);
  process.exitCode = 1;
}
