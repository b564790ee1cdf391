// The text of a record: the row of its file, else its value, else its key, else its id.

import { fileName } from "../format";
import { rounded, shownValue } from "../values";
import type { TraceRecord } from "./results";

/** The text by which users know the record. */
export function textOf(record: TraceRecord): string {
  return record.source?.text ?? record.value ?? record.key ?? record.record_id;
}

/** The same for reading at a glance: columns in place of JSON, fractions rounded. */
export function readable(text: string): string {
  const columns = columnsIn(text);
  if (columns === null) return text.replace(FRACTION, (fraction) => rounded(Number(fraction)));
  return Object.entries(columns)
    .map(([name, value]) => `${name} ${shownValue(value).text}`)
    .join(" · ");
}

/** With more digits than a reader takes in. */
const FRACTION = /(?<![\w.])-?\d+\.\d{6,}(?![\w.])/gu;
const MOST_PARSED = 2_000;
/** JavaScript's numbers are too short for it. */
const LARGE_INTEGER = /(?<![\d.])\d{16,}(?![\d.])/u;

/** Of a row that is written as one JSON object. */
function columnsIn(text: string): { [name: string]: unknown } | null {
  if (!text.startsWith("{") || text.length > MOST_PARSED || LARGE_INTEGER.test(text)) return null;
  try {
    return JSON.parse(text) as { [name: string]: unknown };
  } catch {
    return null; // it only looks like one
  }
}

/** Its location: file and line if it has them, else its id. Partition folders belong to it: `origin=EWR/part-0:1`. */
export function placeOf(record: TraceRecord): string {
  return record.source ? `${filePlace(record.source.path)}:${record.source.line}` : record.record_id;
}

/** The file, below the partition folders that it is in. */
export function filePlace(path: string): string {
  const folders = path.split("/").slice(0, -1);
  const first = folders.length - [...folders].reverse().findIndex((folder) => !/^[^=]+=/.test(folder));
  const partitions = first > folders.length ? folders : folders.slice(first);
  return [...partitions, shortFile(fileName(path))].join("/");
}

/** Spark's part files, without what only makes their names unique: `part-00003….parquet`. */
export const shortFile = (name: string): string =>
  name.replace(/^(part-\d+)-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}[-.]c\d+.*?(\.[a-z]+)?$/u, "$1…$2");

const DONE: { [operation: string]: string } = {
  insert: "a row that the statement inserted",
  update: "a row that the statement changed",
  copy: "a row that the statement left as it was",
  delete: "a row that the statement deleted",
};

/** What a statement of a table did with a record, in words. A word of a newer service stands for itself. */
export const doneText = (operation: string): string => DONE[operation] ?? operation;

/** At most this many whole characters, with an ellipsis where it is cut; line ends and tabs become one blank. */
export function shortened(text: string, most: number): string {
  const oneLine = text
    .slice(0, 4 * most)
    .replace(/\s+/gu, " ")
    .trim();
  const characters = [...oneLine];
  if (characters.length <= most && text.length <= 4 * most) return oneLine;
  return `${characters.slice(0, most - 1).join("")}…`;
}

/** The same of the place of a row, whose line is always shown: `origin=EWR/part…:17`. */
export function shortPlace(place: string, most: number): string {
  const [line = ""] = /:\d+$/u.exec(place) ?? [];
  return [...place].length <= most
    ? place
    : shortened(place.slice(0, -line.length || undefined), most - line.length) + line;
}
