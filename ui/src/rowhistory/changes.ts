// What each version did with the columns of a row: before and after. Pure.

import type { RowVersion } from "../api";
import { shownValue, type ShownValue, type Values } from "../values";

/** A column of the row; null where the row has no such column, or is not there. */
export interface ChangedColumn {
  name: string;
  was: ShownValue | null;
  is: ShownValue | null;
}

/** A version, and the columns that it changed: all of them of a row that came, went, or was not known before. */
export interface Step {
  version: RowVersion;
  columns: ChangedColumn[];
  /** What the columns do not say; else empty. */
  note: string;
}

/** In the order of the versions. */
export function stepsOf(versions: readonly RowVersion[]): Step[] {
  let before: Values | null = null;
  let isFirst = true;
  return versions.map((version) => {
    const step = { version, columns: changedColumns(before, version), note: noteOf(before, version, isFirst) };
    before = version.columns;
    isFirst = false;
    return step;
  });
}

function changedColumns(before: Values | null, { change, columns }: RowVersion): ChangedColumn[] {
  if (change === "deleted") return listed(before ?? {}, {});
  if (columns === null) return [];
  if (before === null || change === "inserted") return listed({}, columns);
  return listed(before, columns);
}

const listed = (before: Values, after: Values): ChangedColumn[] =>
  [...new Set([...Object.keys(after), ...Object.keys(before)])]
    .filter((name) => !(name in before && name in after) || !isSame(before[name], after[name]))
    .map((name) => ({
      name,
      was: name in before ? shownValue(before[name]) : null,
      is: name in after ? shownValue(after[name]) : null,
    }));

/** The service writes numbers so that none is rounded on the way, and equal values in one form. */
const isSame = (value: unknown, other: unknown): boolean => JSON.stringify(value) === JSON.stringify(other);

function noteOf(before: Values | null, { change, columns }: RowVersion, isFirst: boolean): string {
  if (change === "deleted") return before === null ? "what it was is not known" : "";
  if (columns === null) return "its values are not known";
  if (change === "rewritten" && before !== null) return "the same values in another file";
  return isFirst || change === "inserted" || before !== null ? "" : "what it was before is not known";
}
