// Sentences of the history of a row: how its versions are known to be of one row, how many, who wrote each. Pure.

import type { RowHistory, RowVersion } from "../api";
import { count } from "../format";

/** What tells that rows of several files are one row. */
export const byText = ({ by, row_id: id }: RowHistory): string =>
  by === "row_id"
    ? `Row ${id ?? "?"} of the table, which keeps ids of rows: it does not matter who wrote a version`
    : "Followed by what was captured of the statements that made one row of the other";

const DID: { [C in RowVersion["change"]]: string } = {
  inserted: "inserted it",
  changed: "changed it",
  rewritten: "wrote it into another file",
  deleted: "deleted it",
};

/** "4 versions. The last one, version 7, deleted it". */
export function totalText({ versions }: RowHistory): string {
  const last = versions.at(-1);
  if (last === undefined) return "No version is known that inserted, changed or deleted it";
  return `${count(versions.length, "version")}. The last one, version ${last.version_name}, ${DID[last.change]}`;
}

/** Of a version whose writer is no application that is known: the engine. Empty where one is. */
export function unknownWriter({ application_id: application, change, engine }: RowVersion): string {
  if (application !== null) return "";
  if (change === "deleted") return engine || "not known";
  return `${engine === "" ? "" : `${engine}: `}no application is known that wrote its file`;
}
