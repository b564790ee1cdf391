// Records as rows of a table: the link to the trace of each, its columns or its text, and its location.

import type { Column as SchemaColumn } from "../api";
import { type Child, h } from "../dom";
import { nodeNumber } from "../format";
import type { Start } from "../route";
import { type Column, type Sorting, table } from "../table";
import { columnsOf, type RowColumn, shownValue } from "../values";
import type { Remark, TraceRecord } from "./results";
import { doneText, placeOf } from "./texts";

/** The address of a record's trace, in the same directions and extent as this one. */
export type RecordHref = (nodeId: string, record: TraceRecord) => string;

export const startOf = (nodeId: string, record: TraceRecord): Start => ({
  node: nodeNumber(nodeId),
  partition: record.partition,
  offset: record.offset,
});

/** The record that a remark is about: what its address needs. */
export function recordOf({ record_id }: Pick<Remark, "record_id">): TraceRecord {
  const [partition = 0, offset = 0] = record_id.split("#").slice(-2).map(Number);
  return { record_id, partition, offset };
}

export interface RecordTable {
  readonly caption: string;
  readonly records: readonly TraceRecord[];
  /** Of the rows' columns, with types. */
  readonly schema?: readonly SchemaColumn[] | null | undefined;
  readonly keyOf: (record: TraceRecord) => string;
  /** Null: records lead nowhere. */
  readonly hrefOf: ((record: TraceRecord) => string) | null;
  /** A column before all others. */
  readonly leading?: Column<TraceRecord>;
  /** Those columns of rows that are shown; null: all. */
  readonly chosen?: readonly string[] | null;
  /** Nothing is rounded or cut. */
  readonly isFull?: boolean;
  readonly sortingOf?: (column: string) => Sorting;
}

/** Columns of the rows that these records are. */
export const rowColumns = (records: readonly TraceRecord[], schema: RecordTable["schema"]): RowColumn[] =>
  columnsOf(
    records.map(({ source }) => source?.columns),
    schema,
  );

/** A table of records of one operation. The key comes first; columns that no record fills are left out. */
export function recordTable(shown: RecordTable): HTMLElement {
  const { caption, records, schema, keyOf, hrefOf, leading, chosen = null, isFull = false, sortingOf } = shown;
  const has = (part: "key" | "value" | "source"): boolean => records.some((record) => record[part] != null);
  const columns = rowColumns(records, schema).filter(({ name }) => chosen === null || chosen.includes(name));
  const isText = ({ source }: TraceRecord) => source != null && source.columns == null;
  const element = table<TraceRecord>({
    caption,
    rows: records,
    key: keyOf,
    opens: hrefOf !== null,
    columns: [
      ...(leading === undefined ? [] : [leading]),
      {
        name: "Record",
        kind: "narrow",
        cell: (record) => (hrefOf === null ? record.record_id : h("a", { href: hrefOf(record) }, record.record_id)),
      },
      { name: "Key", isUsed: has("key"), cell: ({ key }) => text(key) },
      ...columns.map(({ name, type, isNumber }): Column<TraceRecord> => ({
        name,
        type,
        ...(isNumber ? { kind: "count" as const } : {}),
        sorting: sortingOf?.(name) ?? null,
        cell: ({ source }) => source != null && valueOf(source.columns, name, isFull),
      })),
      { name: "Row", isUsed: records.some(isText), cell: (record) => isText(record) && sourceText(record) },
      { name: "Value", isUsed: has("value"), cell: ({ value }) => text(value) },
      {
        name: "Statement",
        kind: "narrow",
        isUsed: records.some(({ operation }) => operation != null),
        cell: ({ operation }) => operation != null && h("span", { title: doneText(operation) }, operation),
      },
      {
        name: "Location",
        kind: "narrow",
        isUsed: has("source"),
        cell: (record) =>
          record.source != null && [
            h("span", { class: "id", title: record.source.path }, placeOf(record)),
            !isText(record) && noteOf(record),
          ],
      },
    ],
  });
  element.classList.add("records");
  return element;
}

const text = (value: string | null | undefined): Child => value != null && h("code", {}, value);

/** Characters of a value that are not broken into lines. */
const ONE_LINE = 40;

/** A value of a row; nothing where the row has no such column. */
export function valueOf(columns: { [name: string]: unknown } | null | undefined, name: string, isFull = false): Child {
  if (columns == null || !(name in columns)) return null;
  const { text, full, isNull } = shownValue(columns[name]);
  if (isNull) return h("span", { class: "soft" }, text);
  if (isFull) return full ?? text;
  return h("span", { title: full, class: text.length <= ONE_LINE && "one-line" }, text);
}

/** What must be known of a row before one relies on it. */
const noteOf = ({ source }: TraceRecord): Child => [
  source?.warning != null && h("div", { class: "warning" }, `⚠ ${source.warning}`),
  source?.columns_cut === true && h("div", { class: "warning" }, "⚠ cut: it has many columns or long values"),
];

export function sourceText(record: TraceRecord): Child {
  const { source } = record;
  if (source == null) return null;
  return [source.text === null ? h("em", {}, "no text") : h("code", {}, source.text), noteOf(record)];
}

/** A row for reading: its columns with types, and the row as it is on demand; its text where it has no columns. */
export function sourceColumns(record: TraceRecord, schema: RecordTable["schema"]): Child {
  const columns = rowColumns([record], schema);
  if (columns.length === 0) return sourceText(record);
  return [
    h(
      "dl",
      { class: "row-columns" },
      columns.map(({ name, type, isNumber }) =>
        h(
          "div",
          {},
          h("dt", {}, name, type !== "" && [" ", h("small", { title: type }, type)]),
          h("dd", { class: isNumber && "count" }, valueOf(record.source?.columns, name)),
        ),
      ),
    ),
    noteOf(record),
    record.source?.text != null &&
      h("details", {}, h("summary", { class: "small soft" }, "The row as it is"), h("code", {}, record.source.text)),
  ];
}
