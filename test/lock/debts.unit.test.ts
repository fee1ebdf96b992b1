import { expect, it } from "vitest";
import { createDebts } from "../../src/lock/node/debts.ts";
import { type NodeOp, requestOf } from "../../src/lock/node/op.ts";

const release = (key: string) => requestOf("release", { key, value: "v", leaseMs: 60_000 });
const AWAY = { node: "n", outcome: "unavailable", reason: "ECONNREFUSED", message: "" } as const;

/** A node that is away, then back. */
function owing() {
  const sent: NodeOp[] = [];
  let away = true;
  const debts = createDebts((op) => {
    if (away) op.settle(AWAY);
    else sent.push(op);
  });
  return {
    debts,
    keysPaid() {
      away = false;
      debts.connected(true);
      const keys = sent.map(({ request }) => request.key);
      debts.close();
      return keys;
    },
  };
}

it("of what is owed to a node that is away, the newest ten thousand are kept, and no more than twice as many", () => {
  const { debts, keysPaid } = owing();
  for (let i = 0; i < 35_000; i += 1) debts.settle(release(String(i)));
  expect(debts.size).toBeLessThanOrEqual(20_000);
  const paid = new Set(keysPaid());
  const newest = Array.from({ length: 10_000 }, (_, i) => String(25_000 + i));
  expect(newest.filter((key) => !paid.has(key))).toEqual([]);
});

it("a set that may still land is remembered, however much is owed after it", () => {
  const { debts, keysPaid } = owing();
  const set = requestOf("acquire", { key: "landing", value: "v", leaseMs: 60_000 });
  debts.orphaned([{ request: set, settle: () => undefined }]);
  debts.settle(release("landing"));
  for (let i = 0; i < 35_000; i += 1) debts.settle(release(String(i)));
  expect(keysPaid()).toContain("landing");
});

it("what was called off is not paid, also when it is old; and its late answer touches nothing newer", () => {
  const sent: NodeOp[] = [];
  const debts = createDebts((op) => sent.push(op));
  debts.settle(release("again"));
  for (let i = 0; i < 10_000; i += 1) debts.settle(release(String(i)));
  debts.cancel(release("again").pair);
  debts.settle(release("again"));
  const before = debts.size;
  // Of the delete that was sent before it was called off.
  sent[0]!.settle({ node: "n", outcome: "yes" });
  expect(debts.size).toBe(before);
  sent.at(-1)!.settle({ node: "n", outcome: "yes" });
  expect(debts.size).toBe(before - 1);
  debts.close();
});
