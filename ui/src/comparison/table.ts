// The rows that differ, as they were on the left and as they are on the right, with the input rows behind each.

import type { ChangedInput, ComparedRun } from "../api";
import { type Child, h } from "../dom";
import { applicationOf } from "../format";
import { traceHref } from "../route";
import { table } from "../table";
import { type Cell, type Difference, placeOf, reasonText, type Side } from "./differences";

/** Input rows that are shown of each row; the API has the others. */
const MOST_INPUTS = 5;

export const differenceTable = (rows: Difference[], [was, is]: ComparedRun[]): HTMLElement =>
  table<Difference>({
    caption: "Rows that differ, as they were and as they are",
    rows,
    key: ({ was, is }) => `${was?.record ?? ""} ${is?.record ?? ""}`,
    columns: [
      { name: "Row", kind: "narrow", cell: ({ kind }) => h("span", { class: `sign ${kind}` }, kind) },
      { name: `As it was: ${was?.application_id ?? ""}`, cell: ({ was }) => sideOf(was, "it was") },
      { name: `As it is: ${is?.application_id ?? ""}`, cell: ({ is }) => sideOf(is, "it is") },
      { name: "Because of these input rows", cell: becauseOf },
    ],
  });

function sideOf(side: Side | null, words: string): Child {
  if (side === null) return h("span", { class: "soft" }, "no such row");
  return h(
    "div",
    { class: "side" },
    h("dl", {}, side.cells.map(cellOf)),
    h("a", { href: traceHref(applicationOf(nodeOf(side.record)), { record: side.record }) }, `Trace what ${words}`),
  );
}

const cellOf = ({ name, text, full, isNull, isKey, isChanged }: Cell): Child =>
  h(
    "div",
    {},
    h("dt", { class: isKey && "key" }, name),
    h("dd", { class: isNull && "soft", title: full }, isChanged ? h("mark", {}, text) : text),
  );

/** `NODE_ID#RECORD_ID` without the record, which is `write#PARTITION#ROW` or `PARTITION#OFFSET`. */
const nodeOf = (record: string): string => record.replace(/#(?:(?:read|write)#)?\d+#\d+$/, "");

function becauseOf(row: Difference): Child {
  const inputs = row.because ?? [];
  const [shown, more] = [inputs.slice(0, MOST_INPUTS), inputs.length - MOST_INPUTS];
  const reason = reasonText(row);
  return [
    shown.map(inputOf),
    more > 0 && h("div", { class: "soft" }, `and ${more} more`),
    reason !== "" && h("div", { class: row.note === "" ? "soft" : "warning" }, reason),
  ];
}

const inputOf = (input: ChangedInput): HTMLElement =>
  h(
    "div",
    { class: "because" },
    h("span", { class: "id", title: input.path }, placeOf(input)),
    textOf("−", input.was),
    textOf("+", input.is),
  );

const textOf = (sign: string, text: string | null): Child =>
  text !== null && h("div", {}, h("span", { class: "soft" }, `${sign} `), h("code", {}, text));
