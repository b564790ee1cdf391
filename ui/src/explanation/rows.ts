// Rows of inputs and records on the way, as an explanation lists them: each leads to its trace.

import type { DemandedRow, ExplainedRow, Record, WayRecord } from "../api";
import { type Child, h } from "../dom";
import { nodeNumber } from "../format";
import { traceHref } from "../route";
import { doneText, readable, textOf } from "../trace/texts";
import { placeOf, turnOf } from "./sentences";

export const rowOf = (application: string, row: ExplainedRow | DemandedRow, ...more: Child[]): HTMLElement =>
  h(
    "div",
    { class: "input-row" },
    "of" in row && holdersOf(row.of),
    h(
      "a",
      {
        class: "id",
        href: traceHref(application, { record: row.record_id, node: nodeNumber(row.node_id) }),
        title: row.path,
      },
      placeOf(row),
    ),
    row.text !== null && [" ", h("code", {}, readable(row.text))],
    row.warning !== null && h("span", { class: "warning" }, ` ${row.warning}`),
    "demanded" in row && row.demanded === true && h("span", { class: "soft" }, " demanded"),
    more,
  );

/** Which of two records it counts for; nothing where two were not asked about. */
const holdersOf = (sides: ExplainedRow["of"]): Child =>
  sides?.map((side) => [h("span", { class: "holder", title: `Counts for ${side}` }, side), " "]);

/** A link, and the text by which users know it. */
export const recordOf = (application: string, node: string, record: Record): Child => {
  const place = record.source ? placeOf({ ...record.source, record_id: record.record_id }) : record.record_id;
  const text = textOf(record);
  return [
    h("a", { class: "id", href: traceHref(application, { record: record.record_id, node }) }, place),
    text !== record.record_id && [" ", h("code", {}, readable(text))],
    record.operation != null && h("span", { class: "soft", title: doneText(record.operation) }, ` ${record.operation}`),
  ];
};

/** One step of a way: the operation, the record there, and the turn that gave it. */
export const stepOf = (application: string, { node_id: id, name, record, loop, turn }: WayRecord): Child => [
  `${name} (${nodeNumber(id)}) `,
  recordOf(application, nodeNumber(id), record),
  turn !== null && h("span", { class: "soft" }, ` ${turnOf(loop, turn)}`),
];
