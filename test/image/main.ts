/** `make image`: builds the operator's image and says where it is. */
import { parseArgs } from "node:util";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../tools/ci/command.ts";
import { buildImage, OPERATOR_IMAGE } from "./build.ts";

const { values } = parseArgs({
  options: { name: { type: "string" }, stages: { type: "string", default: "offline" } },
});
const { stages } = values;
if (stages !== "offline" && stages !== "all") {
  console.error(
    `--stages ${stages}: write offline (the bundle is made here) or all (npm ci inside)`,
  );
  process.exit(2);
}
const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as {
  version: string;
};
const name = values.name ?? `${OPERATOR_IMAGE}:${version}`;
const file = await buildImage({ name, stages, version, log: console.error });
console.log(`${name}: ${file}`);
