/**
 * One library in a process of its own (its memory is its own, too). Answers JSON lines:
 *   {"clients":32,"ms":500} → {"samples":[ms …],"errors":0,"rss_mb":60}
 */
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { LIBRARIES } from "./libraries.ts";

const [name, ...ports] = process.argv.slice(2);
const library = LIBRARIES.find((one) => one.name === name);
if (library === undefined) throw new Error(`no library ${name}`);
const cycle = await library.start(ports.map(Number));
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);
say({ ready: true });

for await (const line of createInterface({ input: process.stdin })) {
  const { clients, ms } = JSON.parse(line) as { clients: number; ms: number };
  const until = performance.now() + ms;
  const samples: number[] = [];
  let errors = 0;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < until) {
        const start = performance.now();
        try {
          await cycle(`bench:${randomUUID()}`);
          samples.push(performance.now() - start);
        } catch {
          errors += 1;
          await new Promise((resolve) => {
            setTimeout(resolve, 10);
          });
        }
      }
    }),
  );
  say({ samples, errors, rss_mb: process.memoryUsage().rss / 2 ** 20 });
}
