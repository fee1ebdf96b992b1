/** Whose code a bundle holds, and under which terms. */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";

const PACKAGE = /^.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//;

/** Folders of the packages that modules belong to, nested ones included, relative to the project: sorted, each once. */
export function packagesOf(modules: readonly string[]): string[] {
  const folders = modules.flatMap((id) => {
    const found = PACKAGE.exec(id.replaceAll("\\", "/").replaceAll("\0", ""));
    const from = found?.[0].indexOf("node_modules/") ?? -1;
    return found === null || from < 0 ? [] : [found[0].slice(from, -1)];
  });
  return [...new Set(folders)].toSorted();
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string | { readonly type: string };
}

/** A Markdown page with name, version, licence and licence text of each package. @throws Error for one without a licence */
export async function thirdParty(root: string, packages: readonly string[]): Promise<string> {
  const sections = await Promise.all(packages.map((folder) => section(path.join(root, folder))));
  return `# Packages in this image, and their licences\n\n${sections.join("\n")}`;
}

async function section(folder: string): Promise<string> {
  const manifest = JSON.parse(
    await readFile(path.join(folder, "package.json"), "utf8"),
  ) as Manifest;
  const license = typeof manifest.license === "string" ? manifest.license : manifest.license?.type;
  if (license === undefined) {
    throw new Error(`${manifest.name} ${manifest.version} names no licence: it cannot be shipped`);
  }
  const files = (await readdir(folder))
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .toSorted();
  const texts = await Promise.all(files.map((file) => readFile(path.join(folder, file), "utf8")));
  const quoted = texts.map((text) => `\n~~~text\n${text.trim()}\n~~~\n`).join("");
  return `## ${manifest.name} ${manifest.version}: ${license}\n${quoted}`;
}
