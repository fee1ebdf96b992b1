/** Objects of the schema, from tables of their fields. */
import type { StructuralSchema } from "./openapi.ts";

/** A field of an object: its schema, and whether it must be there. */
export type Field = StructuralSchema & { mandatory?: true };
export type Fields = Record<string, Field>;

/** The schema of an object with these fields. */
export function object(
  description: string,
  fields: Fields,
  more: StructuralSchema = {},
): StructuralSchema {
  const names = Object.keys(fields);
  const mandatory = names.filter((name) => fields[name]!.mandatory).sort();
  return {
    description,
    type: "object",
    ...more,
    ...(mandatory.length > 0 ? { required: mandatory } : {}),
    properties: Object.fromEntries(
      names.sort().map((name) => {
        const { mandatory: _, ...schema } = fields[name]!;
        return [name, schema];
      }),
    ),
  };
}
