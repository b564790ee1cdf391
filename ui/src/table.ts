// Tables of rows with named columns.

import { type Child, h } from "./dom";
import { enableArrowKeys, enableRowClick } from "./keys";
import { frame, inSlices } from "./slices";

/** Rows that are made in one task: the page stays responsive. */
const SLICE = 30;

/** How the rows are ordered by a column, and where one orders them so. */
export interface Sorting {
  href: string;
  order: "ascending" | "descending" | null;
}

export interface Column<Row> {
  name: string;
  /** What its values are, below the name. */
  type?: string;
  sorting?: Sorting | null;
  /** Of the cells: `count` for numbers, `narrow` for what must not wrap. */
  kind?: "count" | "narrow";
  cell(row: Row): Child;
  /** False if no row has it: the column is omitted. */
  isUsed?: boolean;
}

export interface TableOptions<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  /** Becomes `data-key` of the row. */
  key?: (row: Row) => string;
  /** A click anywhere in a row follows its first link. */
  opens?: boolean;
}

export function table<Row>({ caption, columns, rows, key, opens = false }: TableOptions<Row>): HTMLElement {
  const used = columns.filter(({ isUsed = true }) => isUsed);
  const body = h("tbody", { class: opens && "opens" });
  const add = (slice: readonly Row[]) => {
    body.append(
      ...slice.map((row) =>
        h(
          "tr",
          { "data-key": key?.(row) },
          used.map(({ kind, cell }) => h("td", { class: kind }, cell(row))),
        ),
      ),
    );
  };
  // Each slice is laid out before the next one comes.
  void inSlices(rows, SLICE, add, { between: frame });
  enableArrowKeys(body);
  if (opens) enableRowClick(body);
  const head = used.map(headOf);
  return h(
    "div",
    { class: "scroll" },
    h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, head)), body),
  );
}

const ARROWS = { ascending: " ▲", descending: " ▼" } as const;

function headOf<Row>({ name, type, kind, sorting }: Column<Row>): HTMLElement {
  const order = sorting?.order ?? null;
  return h(
    "th",
    { scope: "col", class: kind, "aria-sort": order },
    sorting ? h("a", { href: sorting.href }, name) : name,
    order !== null && h("span", { "aria-hidden": "true" }, ARROWS[order]),
    type !== undefined && type !== "" && h("div", { class: "type", title: type }, type),
  );
}
