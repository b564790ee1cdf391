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
  /** Of a table: where the rows are. They may be of several applications. */
  version: string | null;
  rows: Choice[];
  next: string | null;
  warnings: string[];
}

export function matchesOf(result: Trace | Choices): Matches {
  if ("choices" in result) {
    const { application_id: application, name, nodes, total, choices: rows, next, warnings } = result;
    return { application, name, nodes, total, version: result.version ?? null, rows, next, warnings };
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
    version: null,
    rows,
    next: null,
    warnings: [],
  };
}
