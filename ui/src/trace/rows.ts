// Records as rows of a table: the link to the trace of each, its contents and its location.

import { type Child, h } from "../dom";
import { nodeNumber } from "../format";
import type { Start } from "../route";
import { table } from "../table";
import { hashOf } from "./model";
import type { Remark, TraceRecord } from "./results";
import { placeOf } from "./texts";

/** The address of a record's trace, in the same directions and extent as this one. */
export type RecordHref = (nodeId: string, record: TraceRecord) => string;

export const startOf = (nodeId: string, record: TraceRecord): Start => ({
  node: nodeNumber(nodeId),
  partition: record.partition,
  offset: record.offset,
});

/** The record that a remark is about: what its address needs. */
export function recordOf({ record_id }: Remark): TraceRecord {
  const [partition = 0, offset = 0] = record_id.split("#").slice(-2).map(Number);
  return { record_id, partition, offset };
}

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
        cell: (record) => record.source && h("span", { title: record.source.path }, placeOf(record)),
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
