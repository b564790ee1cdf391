// The rows that fulfil a condition, whatever the service returned: several to choose from, or the trace of the only one.
// Pure.

import type { Choice, Choices, Trace } from "../api";

export interface Matches {
  application: string;
  /** Its name. */
  name: string;
  /** The operations that have these rows. */
  nodes: string[];
  total: number | null;
  rows: Choice[];
  next: string | null;
  warnings: string[];
}

export function matchesOf(result: Trace | Choices): Matches {
  if ("choices" in result) {
    const { application_id: application, name, nodes, total, choices: rows, next, warnings } = result;
    return { application, name, nodes, total, rows, next, warnings };
  }
  const rows = result.starts.flatMap(({ node_id, records }) =>
    records.map(({ record_id, source }): Choice => ({
      node_id,
      record_id,
      path: source?.path ?? null,
      row: source?.row ?? null,
      line: source?.line ?? null,
      columns: source?.columns ?? null,
      text: source?.text ?? null,
      warning: source?.warning ?? null,
    })),
  );
  const [first] = result.starts;
  return {
    application: first?.application_id ?? "",
    name: first?.application_name ?? "",
    nodes: result.starts.map(({ node_id }) => node_id),
    total: result.starts.reduce((sum, { total }) => sum + total, 0),
    rows,
    next: null,
    warnings: [],
  };
}

/** Columns that any of the rows has, in the order of the first that has them. */
export const columnsOf = (rows: readonly Choice[]): string[] => [
  ...new Set(rows.flatMap(({ columns }) => Object.keys(columns ?? {}))),
];

export interface ShownValue {
  text: string;
  /** All of it, where the text has less. */
  full: string | null;
  isNull: boolean;
  isNumber: boolean;
}

const DIGITS = 6;

/** A value for a cell: fractions are rounded for reading. */
export function shownValue(value: unknown): ShownValue {
  const isNumber = typeof value === "number";
  if (value === null || value === undefined) return { text: "null", full: null, isNull: true, isNumber: false };
  if (isNumber && !Number.isInteger(value)) {
    const text = String(Number(value.toPrecision(DIGITS)));
    return { text, full: text === String(value) ? null : String(value), isNull: false, isNumber };
  }
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return { text, full: null, isNull: false, isNumber };
}
