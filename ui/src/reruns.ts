// Commands that copy the input rows of a record, or run its job again on some of them. Pure.
// The command of the job itself is the reader's to give: the service does not know it.

import type { RowSetFile } from "./api";
import { markOf } from "./marks";
import type { Start } from "./route";
import { lineOf, shellWord, startWords } from "./words";

/** What stands for the command of the job. */
export const YOUR_COMMAND = "-- YOUR COMMAND";

/** Rows of files, as ranges `[first, count]`. */
export type NamedRows = Pick<RowSetFile, "path" | "rows">;

/** A name of a row of an output: a replay can say whether it comes out again. */
export const isOutput = (start: Start): boolean => "record" in start && /(^|#)write#/.test(start.record);

/** `lineage rows` of the record, with more words. */
export const rowsLine = (application: string, start: Start, ...more: string[]): string =>
  [wordsOf("rows", application, start), ...more.map(shellWord)].join(" ");

/** Runs the job again on the input rows of the record. */
export const replayLine = (application: string, start: Start, ...more: string[]): string =>
  [wordsOf("replay", application, start), ...more, YOUR_COMMAND].join(" ");

/** How far an output row moves without each of its input rows. */
export const influenceLine = (application: string, start: Start): string =>
  `${wordsOf("influence", application, start)} ${YOUR_COMMAND}`;

/** Looks for the fewest of the input rows on which the record is still wrong, or its task still fails. */
export function siftLine(application: string, start: Start): string | null {
  const flags = "failure" in start ? `--crash --failure ${start.failure}` : wrongFlag(start);
  return flags === null ? null : `${lineOf(["sift", application], {})} ${flags} ${YOUR_COMMAND}`;
}

function wrongFlag(start: Start): string | null {
  const mark = markOf("bad", start);
  return mark === null ? null : `--wrong ${shellWord(mark.name)}`;
}

/** Runs the job again on rows that are named: on only these, or on all but these. */
export const namedReplayLine = (application: string, mode: "only" | "without", rows: readonly NamedRows[]): string =>
  `${lineOf(["replay", application], { [mode]: rowNames(rows) })} ${YOUR_COMMAND}`;

function wordsOf(command: "rows" | "replay" | "influence", application: string, start: Start): string {
  const { record, flags } = startWords(start);
  // Of a condition all rows are meant without a word for it.
  return lineOf([command, application, ...record.filter((word) => word !== "--all")], flags);
}

/** `sales.csv:4,7-9`: lines count from 1. */
export const rowNames = (files: readonly NamedRows[]): string =>
  files
    .filter(({ rows }) => rows.length > 0)
    .map(({ path, rows }) => `${path}:${lineRanges(rows).join(",")}`)
    .join(",");

/** `["4", "7-9"]`. */
export const lineRanges = (rows: readonly (readonly [number, number])[]): string[] =>
  rows.map(([first, count]) => (count === 1 ? `${first + 1}` : `${first + 1}-${first + count}`));

/** How many rows these ranges have. */
export const countOf = (rows: readonly (readonly [number, number])[]): number =>
  rows.reduce((sum, [, count]) => sum + count, 0);

/** Rows one by one, in order, as ranges that do not touch. */
export function rangesOf(rows: Iterable<number>): [number, number][] {
  const ranges: [number, number][] = [];
  for (const row of [...new Set(rows)].sort((one, other) => one - other)) {
    const last = ranges.at(-1);
    if (last !== undefined && last[0] + last[1] === row) last[1] += 1;
    else ranges.push([row, 1]);
  }
  return ranges;
}
