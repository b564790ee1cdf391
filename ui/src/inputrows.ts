// Rows of inputs below each other: where each is, and what it says.

import type { SourceRow } from "./api";
import { type Child, h } from "./dom";
import { count } from "./format";
import { filePlace, readable } from "./trace/texts";

/** Rows that are shown at once. */
const SHOWN = 10;

/** `total` is how many records there are, listed or not. `hrefOf` is where a row leads; without it, nowhere. */
export function inputRows(
  rows: readonly SourceRow[],
  total: number,
  hrefOf: ((row: SourceRow) => string) | null = null,
): Child {
  const [shown, others] = [rows.slice(0, SHOWN), rows.slice(SHOWN)];
  const unlisted = total - rows.length;
  return [
    shown.map((row) => inputRow(row, hrefOf)),
    others.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, count(others.length, "more row")),
        others.map((row) => inputRow(row, hrefOf)),
      ),
    unlisted > 0 && h("div", { class: "soft" }, `and ${count(unlisted, "more input record")}`),
  ];
}

function inputRow(row: SourceRow, hrefOf: ((row: SourceRow) => string) | null): HTMLElement {
  const place = `${filePlace(row.path)}:${row.line}`;
  return h(
    "div",
    { class: "input-row" },
    hrefOf === null
      ? h("span", { class: "id", title: row.path }, place)
      : h("a", { class: "id", href: hrefOf(row), title: row.path }, place),
    row.text !== null && [" ", h("code", {}, readable(row.text))],
    row.warning !== null && h("span", { class: "warning" }, ` ${row.warning}`),
  );
}
