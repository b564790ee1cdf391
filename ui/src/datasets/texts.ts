// What the views of datasets say in words. Pure.

import type { Column, DatasetSummary, DatasetUse, DatasetWrite } from "../api";
import { fileName } from "../format";

/** The last part of a dataset's path: what people call it. */
export function shortName({ path, name }: Pick<DatasetSummary, "path" | "name">): string {
  return fileName(path.replace(/\/+$/, "")) || name;
}

/** The path in front of that; empty if there is none. */
export function folderOf({ path }: Pick<DatasetSummary, "path">): string {
  const trimmed = path.replace(/\/+$/, "");
  return trimmed.slice(0, trimmed.lastIndexOf("/") + 1);
}

const STATES = {
  running: "running",
  complete: "written",
  failed: "failed",
  aborted: "cancelled",
  lost: "lost",
} as const;

/** How a write or a read ended. */
export const stateOf = ({ state, kind = "write" }: Pick<DatasetWrite, "state"> & Partial<Pick<DatasetUse, "kind">>) =>
  state === "complete" && kind === "read" ? "read" : STATES[state];

/** The class that gives the state its colour. */
export const stateColour = ({ state }: Pick<DatasetWrite, "state">): string | null =>
  state === "failed" || state === "lost" ? `is-${state}` : state === "aborted" ? "warning" : null;

/** "2 of 5": how many of the runs that wrote it failed. Empty if none did. */
export const failures = ({ runs, failed_runs: failed }: Pick<DatasetSummary, "runs" | "failed_runs">): string =>
  failed === 0 ? "" : `${failed} of ${runs}`;

/** A column with its depth below the columns of the dataset. */
export interface FlatColumn {
  column: Column;
  /** With the names of the structs that it is in. */
  path: string;
  depth: number;
}

/** Columns and the fields of structs in one list, each field below its struct. */
export function flatColumns(columns: readonly Column[], prefix = "", depth = 0): FlatColumn[] {
  return columns.flatMap((column) => {
    const path = prefix + column.name;
    return [{ column, path, depth }, ...flatColumns(column.fields, `${path}.`, depth + 1)];
  });
}
