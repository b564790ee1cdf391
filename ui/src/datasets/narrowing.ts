// A condition that only one of several rows fulfils, made of the columns that tell it from the others. Pure.

import type { Choice, Column } from "../api";
import { columnName, kindOf } from "./conditions";

/** Of a text in a condition. */
const MOST_CHARACTERS = 200;
const NUMBER = /^[+-]?\d+(\.\d+)?$/;

/**
 * The condition that was asked, narrowed to one of the rows that fulfil it. Null where nothing that a condition can say
 * tells the row from the others. Only these rows are known: one that is not listed may fulfil it, too.
 */
export function narrowed(
  where: string,
  row: Choice,
  rows: readonly Choice[],
  schema: readonly Column[] = [],
): string | null {
  let others = rows.filter((other) => other !== row);
  if (others.length === 0) return where;
  const types = new Map(schema.map(({ name, type }) => [name, type]));
  const columns = Object.entries(row.columns ?? {})
    .map(([name, value]) => ({ name, value, term: termOf(columnName(name), value, types.get(name)) }))
    .filter(({ term }) => term !== null)
    .sort((left, right) => rankOf(left.value) - rankOf(right.value)); // stable: else as they stand
  const single = columns.find((column) => others.every((other) => differs(other, column)));
  const terms: string[] = [];
  for (const column of single === undefined ? columns : [single]) {
    const left = others.filter((other) => !differs(other, column));
    if (column.term !== null && left.length < others.length) terms.push(column.term);
    others = left;
  }
  if (others.length > 0) return null;
  return [/\bor\b/i.test(where) ? `(${where})` : where, ...terms].join(" and ");
}

const differs = ({ columns }: Choice, { name, value }: { name: string; value: unknown }): boolean =>
  JSON.stringify(columns?.[name]) !== JSON.stringify(value);

/** What is likely to be an id comes first: whole numbers, then texts. */
const rankOf = (value: unknown): number => (Number.isInteger(value) ? 0 : typeof value === "string" ? 1 : 2);

/** That a column has a value; null where no condition says that. */
function termOf(column: string, value: unknown, type: string | undefined): string | null {
  if (value === null) return `${column} is null`;
  if (typeof value === "boolean" || typeof value === "number") return `${column} = ${value}`;
  if (typeof value !== "string" || value.length > MOST_CHARACTERS) return null;
  const kind = type === undefined ? null : kindOf(type);
  // Numbers that JSON cannot hold are texts of digits, and compare without quotes only.
  if (kind === "number") return NUMBER.test(value) ? `${column} = ${value}` : null;
  if (kind === "other" || (kind === null && NUMBER.test(value))) return null;
  return `${column} = '${value.replaceAll("'", "''")}'`;
}
