// What is said of replays, in words. Pure.

import type { OutputDifferences, Replay, ReplayedOutput, UsedRows } from "../api";
import { count, duration, fileName, number } from "../format";
import { type NamedRows, rowNames, YOUR_COMMAND } from "../reruns";
import type { Start } from "../route";
import { filePlace } from "../trace/texts";
import { lineOf, shellWord } from "../words";

export type Verdict = Replay["verdict"];

/** What a verdict means. */
export const VERDICTS: { [V in Verdict]: string } = {
  reproduced: "The same rows came out again.",
  close: "The same rows came out again; numbers differ by less than 1e-9 of their size.",
  changed: "Other values came out.",
  no: "Nothing that corresponds came out.",
  refused: "It would have done something to what is not its own. It did not.",
};

/** "on 3 of 7 rows of sales.csv". */
export function rowsText({ mode, rows, of: total, used }: Replay): string {
  const files = new Set(
    used.flatMap(({ path, rows: ranges }) => (path !== null && ranges?.length ? [fileName(path)] : [])),
  );
  const of = total === null ? "" : ` of ${number(total)}`;
  const named = `${number(rows)}${of} ${rows === 1 && of === "" ? "row" : "rows"}${files.size > 0 ? ` of ${[...files].join(", ")}` : ""}`;
  return { only: `on ${named}`, without: `without ${named}`, replace: `with ${named} replaced`, all: "on all rows" }[
    mode
  ];
}

/** "in 2 rounds, 86 s". */
export const effortText = ({ rounds, seconds }: Replay): string => `in ${count(rounds, "round")}, ${duration(seconds)}`;

/** Why more rows were taken, or all. */
export const strategyText = ({ strategy }: Replay): string =>
  ({
    rows: "",
    repair: "Rows were added to those of the lineage, since without them records went another way.",
    watch: "All rows were replayed, since an operation depends on the places of records.",
  })[strategy];

/** "part-00000:2", else the record, else the failure. */
export const outputPlace = ({ path, line, record }: ReplayedOutput): string =>
  path === null ? (record ?? "the failure") : `${filePlace(path)}${line === null ? "" : `:${line}`}`;

/** Where the trace of an output begins in the original. Null: it is a failure. */
export function outputStart({ path, row, record }: ReplayedOutput): Start | null {
  if (record !== null) return { record };
  return path === null || row === null ? null : { path, row };
}

/** "1 changed, 1 gone, 0 new, 2 the same". */
export function differenceText({
  changed_total: changed,
  gone_total: gone,
  new_total: added,
  same,
  note,
}: OutputDifferences) {
  if (changed === null || gone === null || added === null || same === null)
    return `not compared${note === "" ? "" : `: ${note}`}`;
  return `${number(changed)} changed, ${number(gone)} gone, ${number(added)} new, ${number(same)} the same`;
}

/** A row that differs, as it was and as it is. */
export interface DifferingRow {
  readonly kind: "changed" | "gone" | "new";
  readonly was: string | null;
  readonly is: string | null;
}

/** Those that are listed, changed ones first. */
export const differingRows = ({ changed, gone, new: added }: OutputDifferences): DifferingRow[] => [
  ...changed.map(({ was, is }) => ({ kind: "changed" as const, was, is })),
  ...gone.map((was) => ({ kind: "gone" as const, was, is: null })),
  ...added.map((is) => ({ kind: "new" as const, was: null, is })),
];

/** How many rows differ that are not listed. */
export const unlistedRows = (differences: OutputDifferences): number =>
  (differences.changed_total ?? 0) +
  (differences.gone_total ?? 0) +
  (differences.new_total ?? 0) -
  differingRows(differences).length;

/** The rows of files that a replay has named. */
const filesOf = (used: readonly UsedRows[]): NamedRows[] =>
  used.flatMap(({ path, rows }) => (path === null || rows === null ? [] : [{ path, rows }]));

/** The command that makes the same replay again. What the job is run with, and new texts, the reader knows. */
export function commandOf(replay: Replay): string {
  const { of_application: application, mode, outputs, used, skipped, steps } = replay;
  const line = (flags: { [name: string]: string }, ...words: string[]) =>
    `${lineOf(["replay", application, ...words], flags)}${steps === null ? "" : " --step"} ${YOUR_COMMAND}`;
  if (skipped !== null) return `${lineOf(["replay", application], {})} --skip-failing ${YOUR_COMMAND}`;
  const rows = rowNames(filesOf(used));
  if (mode === "without") return line({ without: rows });
  if (mode === "replace") return `${replacements(application, filesOf(used))} ${YOUR_COMMAND}`;
  const starts = outputs.flatMap(startWord);
  if (starts.length > 0) return line({}, ...starts);
  return rows === "" ? line({ failure: "N" }) : line({ only: rows });
}

const startWord = ({ path, line, record }: ReplayedOutput): string[] => {
  if (path !== null && line !== null) return [`${path}:${line}`];
  return record === null ? [] : [numbered(record)];
};

/** `NODE_ID#RECORD_ID` with the number of its node only: the application stands before it. */
const numbered = (record: string): string => /\d+#(?:(?:read|write)#)?\d+#\d+$/.exec(record)?.[0] ?? record;

function replacements(application: string, files: readonly NamedRows[]): string {
  const rows = files.flatMap(({ path, rows }) =>
    rows.flatMap(([first, length]) => Array.from({ length }, (_, at) => `${path}:${first + at + 1}=NEW TEXT`)),
  );
  return [lineOf(["replay", application], {}), ...rows.map((row) => `--replace ${shellWord(row)}`)].join(" ");
}
