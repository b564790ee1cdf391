// The rows that differ, whatever became of them: what each was and is, and the input rows behind it. Pure.

import type { ChangedInput, ComparedRow, Comparison } from "../api";
import { filePlace } from "../trace/texts";
import { shownValue, type ShownValue } from "../values";

/** A value of a row. */
export interface Cell extends ShownValue {
  name: string;
  isKey: boolean;
  isChanged: boolean;
}

/** A row in one of the two runs. */
export interface Side {
  /** `NODE_ID#RECORD_ID`: a trace can start there. */
  record: string;
  cells: Cell[];
}

export interface Difference {
  kind: "changed" | "gone" | "new";
  was: Side | null;
  is: Side | null;
  /** Input rows that are not the same in both runs; null if they were not looked up. */
  because: ChangedInput[] | null;
  note: string;
}

/** Changed rows first, then those that are gone, then new ones. */
export function differencesOf({ key, changed, gone, new: added }: Comparison): Difference[] {
  const sideOf = (record: string, columns: { [name: string]: unknown }, differing: readonly string[]): Side => ({
    record,
    cells: inOrder(Object.keys(columns), key).map((name) => ({
      name,
      isKey: key.includes(name),
      isChanged: differing.includes(name),
      ...shownValue(columns[name]),
    })),
  });
  const alone = ({ record, columns }: ComparedRow) => sideOf(record, columns, []);
  const reasonOf = ({ because, because_note: note }: Pick<ComparedRow, "because" | "because_note">) => ({
    because,
    note,
  });
  return [
    ...changed.map((row) => ({
      kind: "changed" as const,
      was: sideOf(row.was_record, row.was, row.columns),
      is: sideOf(row.is_record, row.is, row.columns),
      ...reasonOf(row),
    })),
    ...gone.map((row) => ({ kind: "gone" as const, was: alone(row), is: null, ...reasonOf(row) })),
    ...added.map((row) => ({ kind: "new" as const, was: null, is: alone(row), ...reasonOf(row) })),
  ];
}

/** Columns of the key come first. */
const inOrder = (names: readonly string[], key: readonly string[]): string[] => [
  ...key.filter((name) => names.includes(name)),
  ...names.filter((name) => !key.includes(name)),
];

/** Why a row differs, where there are no input rows to show for it. */
export function reasonText({ kind, because, note }: Difference): string {
  if (note !== "") return note;
  if (because === null) return "its input rows were not looked up";
  if (because.length > 0) return "";
  return kind === "changed" ? "its input rows are the same in both runs" : "the other run has its input rows, too";
}

export const placeOf = ({ path, line }: ChangedInput): string => `${filePlace(path)}:${line}`;
