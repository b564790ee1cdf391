// Rows of a dataset to choose from, by their columns, with what leads on from each.

import type { Choice, Column as SchemaColumn } from "../api";
import { h } from "../dom";
import { historyHref, queryOf } from "../route";
import { type Column, table } from "../table";
import { valueOf } from "../trace/rows";
import { filePlace } from "../trace/texts";
import { columnsOf } from "../values";
import { narrowed } from "./narrowing";

/** `leading` are the columns with the links. */
export function choiceTable(
  rows: readonly Choice[],
  schema: readonly SchemaColumn[],
  leading: Column<Choice>[],
): HTMLElement {
  const columns = columnsOf(
    rows.map((row) => row.columns),
    schema,
  );
  return table<Choice>({
    caption: "Rows that fulfil the condition",
    rows,
    key: ({ node_id: node, record_id: record }) => `${node} ${record}`,
    opens: true,
    columns: [
      ...leading,
      ...columns.map(({ name, type, isNumber }): Column<Choice> => ({
        name,
        type,
        ...(isNumber ? { kind: "count" as const } : {}),
        cell: (row) => valueOf(row.columns, name),
      })),
      { name: "Text", isUsed: columns.length === 0, cell: ({ text }) => text !== null && h("code", {}, text) },
      {
        name: "Location",
        cell: (row) => [
          h("span", { class: "id", title: row.path }, choicePlace(row)),
          row.warning !== null && h("div", { class: "warning" }, row.warning),
        ],
      },
    ],
  });
}

export const choicePlace = ({ path, line, record_id: record }: Choice): string =>
  path === null ? record : line === null ? filePlace(path) : `${filePlace(path)}:${line}`;

/** Leads to the history of each row of a table, by a condition that it alone fulfils. */
export const historyColumn = (
  { path, schema }: { path: string; schema: readonly SchemaColumn[] },
  { where, version }: { where: string; version: string | null },
  rows: readonly Choice[],
): Column<Choice> => ({
  name: "Versions",
  kind: "narrow",
  cell: (row) => {
    const condition = narrowed(where, row, rows, schema);
    if (condition === null) return h("span", { class: "soft" }, "no condition names it alone");
    const href = historyHref(path, queryOf({ where: condition, version }));
    return h("a", { href, "aria-label": `History of ${choicePlace(row)}` }, "History");
  },
});
