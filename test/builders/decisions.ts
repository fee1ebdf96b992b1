import { expect, it } from "vitest";
import { decide, type Decision } from "../../src/domain/decide/index.ts";
import { aSnapshot } from "./snapshot.ts";

/** What is decided in each situation; every decision says why. */
export type Case = [situation: string, snapshot: Fields, want: Partial<Decision>];
type Fields = Parameters<typeof aSnapshot>[0];

export function check(cases: Case[]): void {
  it.each(cases)("%s", (_, snapshot, want) => {
    const decision = decide(aSnapshot(snapshot));
    expect(decision).toMatchObject(want);
    expect(decision.message).not.toBe("");
  });
}
