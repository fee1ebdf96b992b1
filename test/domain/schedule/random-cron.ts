import * as fc from "fast-check";

/** A field as text and, independently of the parser under test, as the set of numbers it stands for. */
export interface RandomField {
  text: string;
  values: ReadonlySet<number>;
  star: boolean;
}

export interface RandomCron {
  text: string;
  minutes: RandomField;
  hours: RandomField;
  daysOfMonth: RandomField;
  months: RandomField;
  weekdays: RandomField;
}

const set = (values: number[]): ReadonlySet<number> => new Set(values);

function range(from: number, to: number, step = 1): number[] {
  const values = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}

function field(min: number, max: number, starWeight: number): fc.Arbitrary<RandomField> {
  const number = fc.integer({ min, max });
  const span = fc.tuple(number, number).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const step = fc.integer({ min: 2, max: Math.max(2, max >> 1) });
  return fc.oneof(
    {
      weight: starWeight,
      arbitrary: fc.constant({ text: "*", values: set(range(min, max)), star: true }),
    },
    {
      weight: 2,
      arbitrary: fc.uniqueArray(number, { minLength: 1, maxLength: 4 }).map((list) => ({
        text: list.join(","),
        values: set(list),
        star: false,
      })),
    },
    {
      weight: 2,
      arbitrary: step.map((n) => ({
        text: `*/${n}`,
        values: set(range(min, max, n)),
        star: false,
      })),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(span, step).map(([[a, b], n]) => ({
        text: `${a}-${b}/${n}`,
        values: set(range(a, b, n)),
        star: false,
      })),
    },
  );
}

/** Expressions of five fields; most fire every day or every few days. */
export const randomCron: fc.Arbitrary<RandomCron> = fc
  .record({
    minutes: field(0, 59, 1),
    hours: field(0, 23, 3),
    daysOfMonth: field(1, 31, 5),
    months: field(1, 12, 12),
    weekdays: field(0, 6, 5),
  })
  .map((fields) => ({
    ...fields,
    text: [fields.minutes, fields.hours, fields.daysOfMonth, fields.months, fields.weekdays]
      .map((each) => each.text)
      .join(" "),
  }));
