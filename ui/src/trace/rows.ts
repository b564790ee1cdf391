// Records as rows of a table: the link to the trace of each, its contents and its location.

import { type Child, h } from "../dom";
import { fileName, nodeNumber } from "../format";
import type { Start } from "../route";
import { table } from "../table";
import { hashOf } from "./model";
import type { TraceRecord } from "./results";

/** The address of a record's trace, in the same directions and extent as this one. */
export type RecordHref = (nodeId: string, record: TraceRecord) => string;

export const startOf = (nodeId: string, record: TraceRecord): Start => ({
  node: nodeNumber(nodeId),
  partition: record.partition,
  offset: record.offset,
});

/** A table of records of one operation; columns that no record fills are left out. Rows have the hash as their key. */
export function recordTable(
  nodeId: string,
  records: readonly TraceRecord[],
  caption: string,
  recordHref: RecordHref,
): HTMLElement {
  const has = (part: "key" | "value" | "source"): boolean => records.some((record) => record[part] != null);
  return table<TraceRecord>({
    caption,
    rows: records,
    key: (record) => hashOf(nodeId, record),
    opens: true,
    columns: [
      {
        name: "Record",
        kind: "narrow",
        cell: (record) => h("a", { href: recordHref(nodeId, record) }, record.record_id),
      },
      { name: "Row", isUsed: has("source"), cell: sourceText },
      {
        name: "Location",
        kind: "narrow",
        isUsed: has("source"),
        cell: ({ source }) => source && h("span", { title: source.path }, `${fileName(source.path)}:${source.line}`),
      },
      { name: "Key", isUsed: has("key"), cell: ({ key }) => text(key) },
      { name: "Value", isUsed: has("value"), cell: ({ value }) => text(value) },
    ],
  });
}

const text = (value: string | null | undefined): Child => value != null && h("code", {}, value);

export function sourceText({ source }: TraceRecord): Child {
  if (source == null) return null;
  return [
    source.text === null ? h("em", {}, "no text") : h("code", {}, source.text),
    source.warning !== null && h("div", { class: "warning" }, `⚠ ${source.warning}`),
  ];
}
