// How a record is called: the row of its file, else its value, else its key, else its id.

import { fileName } from "../format";
import type { TraceRecord } from "./results";

/** What people know the record by. */
export function textOf(record: TraceRecord): string {
  return record.source?.text ?? record.value ?? record.key ?? record.record_id;
}

/** Where it stands: file and line where it has them, else its id. */
export function placeOf(record: TraceRecord): string {
  return record.source ? `${fileName(record.source.path)}:${record.source.line}` : record.record_id;
}

/** Whole characters, and an ellipsis where it is cut; line ends and tabs as one blank. */
export function shortened(text: string, most: number): string {
  const oneLine = text
    .slice(0, 4 * most)
    .replace(/\s+/gu, " ")
    .trim();
  const characters = [...oneLine];
  if (characters.length <= most && text.length <= 4 * most) return oneLine;
  return `${characters.slice(0, most - 1).join("")}…`;
}
