// The columns of a dataset as a table: names, types, and which divide its folders.

import type { DatasetSummary } from "../api";
import { type Child, h } from "../dom";
import { notice } from "../states";
import { table } from "../table";
import { type FlatColumn, flatColumns } from "./texts";

export function schemaOf({ schema, partitions }: Pick<DatasetSummary, "schema" | "partitions">): Child {
  if (schema.length === 0) {
    return notice(
      "empty",
      "The columns are not known: it was written and read as lines, or by an older agent. ",
      "Its rows still have columns if its files do.",
    );
  }
  return table<FlatColumn>({
    caption: "Columns with their types",
    rows: flatColumns(schema),
    key: ({ path }) => path,
    columns: [
      {
        name: "Column",
        cell: ({ column, depth }) =>
          h("span", { class: depth > 0 ? "soft" : null }, `${"– ".repeat(depth)}${column.name}`),
      },
      { name: "Type", cell: ({ column }) => h("code", {}, column.type) },
      {
        name: "Notes",
        cell: ({ column, path }) =>
          [partitions.includes(path) && "divides the folders", column.nullable === false && "never null"]
            .filter((part) => part !== false)
            .join(", "),
      },
    ],
  });
}
