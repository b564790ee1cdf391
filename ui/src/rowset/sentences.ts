// What is said of a row set, in words. Pure.

import type { AskedRecord, RowSet, RowSetSource } from "../api";
import { callSite, count, number } from "../format";
import { countOf, isOutput, replayLine, rowsLine, YOUR_COMMAND } from "../reruns";
import type { Start } from "../route";
import { filePlace, readable, shortened } from "../trace/texts";
import { lineOf } from "../words";

const TITLE_CHARACTERS = 120;

/** "part-00000:2 EWR,2013-02,57.81", or how many records there are. */
export function askedText(asked: readonly AskedRecord[]): string {
  const [first, ...others] = asked;
  if (first === undefined) return "no record";
  if (others.length > 0) return count(asked.length, "record");
  const place =
    first.path === null || first.row === null ? first.record_id : `${filePlace(first.path)}:${first.row + 1}`;
  const text = first.text ?? first.key;
  return text === null ? place : `${place} ${shortened(readable(text), TITLE_CHARACTERS)}`;
}

/** "textFile (0) at job.py:12". */
export const sourceText = ({ name, node, call_site: site }: RowSetSource): string =>
  `${name} (${node})${site === null || site === "" ? "" : ` at ${callSite(site)}`}`;

/** How many records of a source are meant. */
export const recordsOf = ({ splits }: RowSetSource): number =>
  splits.reduce((sum, { positions }) => sum + countOf(positions), 0);

/** "3 of 7 records". */
export function shareText(source: RowSetSource): string {
  if (source.whole) return source.total === null ? "all records" : `all ${count(source.total, "record")}`;
  const records = recordsOf(source);
  return source.total === null ? count(records, "record") : `${number(records)} of ${count(source.total, "record")}`;
}

/** Commands for these rows, each below what it does. */
export function commandsFor(application: string, start: Start, { asked }: RowSet): [string, string][] {
  const isOfOutput = isOutput(start) || asked.some(({ record_id: id }) => id.startsWith("write#"));
  const replay =
    "failure" in start
      ? "Does the task fail again on these rows only?"
      : "Does it come out again from these rows only?";
  return [
    ["These rows as files of the same shape, for a unit test:", rowsLine(application, start, "--extract", "fixture")],
    ["The same files without these rows:", rowsLine(application, start, "--extract", "fixture", "--without")],
    isOfOutput || "failure" in start ? ([replay, replayLine(application, start)] as [string, string]) : null,
    ["These rows as a row set, for other commands:", rowsLine(application, start, "--output", "rows.json")],
    [
      "What would the outputs be without the rows of this row set?",
      `${lineOf(["replay", application], { without: "rows.json" })} ${YOUR_COMMAND}`,
    ] as [string, string],
  ].filter((line): line is [string, string] => line !== null);
}
