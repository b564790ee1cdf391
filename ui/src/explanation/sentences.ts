// What is said of an explanation, in words. Pure.

import type {
  ComparedExplanation,
  ExplainedRow,
  Explanation,
  ExplanationCheck,
  ExplanationRule,
  ExplanationTurn,
  Meeting,
} from "../api";
import { callSite, count, nodeNumber, number, time } from "../format";
import { filePlace, readable, shortened, textOf } from "../trace/texts";

const TITLE_CHARACTERS = 120;

/** "EWR,2013-02,57.81", or how many records are explained. */
export function startText({ starts }: Explanation): string {
  const total = starts.reduce((sum, start) => sum + start.total, 0);
  const record = starts[0]?.records[0];
  if (total !== 1 || record === undefined) return count(total, "record");
  const place = record.source ? `${filePlace(record.source.path)}:${record.source.line}` : record.record_id;
  const text = shortened(readable(textOf(record)), TITLE_CHARACTERS);
  return text === record.record_id ? place : `${place} ${text}`;
}

/** "4 of 312,071 input rows". */
export const sizeText = ({ total, of }: Explanation): string =>
  of === null ? count(total, "input row") : `${number(total)} of ${count(of, "input row")}`;

/** "a plain trace: 311,614"; empty while it is not known. */
export const plainText = ({ plain_total: plain }: Explanation): string =>
  plain === null ? "" : `a plain trace: ${number(plain)}`;

export const BOUND = "This is an upper bound: not all of these rows need to have decided it.";

/** "part-00000:3", or the id of a record without a file. */
export const placeOf = ({
  path,
  line,
  record_id: id,
}: Pick<ExplainedRow, "path" | "line" | "record_id"> & { row?: number | null }): string =>
  path === null || line === null ? id : `${filePlace(path)}:${line}`;

/** A loop, with those of its turns on the way, in order. */
export interface Loop {
  readonly name: string;
  /** By turn, the operations whose records it gave. */
  readonly turns: readonly (readonly [number, readonly ExplanationTurn[]])[];
}

export function loopsOf(turns: readonly ExplanationTurn[]): Loop[] {
  const loops = new Map<string, Map<number, ExplanationTurn[]>>();
  for (const turn of turns) {
    const ofLoop = loops.get(turn.loop) ?? new Map<number, ExplanationTurn[]>();
    ofLoop.set(turn.turn, [...(ofLoop.get(turn.turn) ?? []), turn]);
    loops.set(turn.loop, ofLoop);
  }
  return [...loops].map(([loop, ofLoop]) => ({
    name: callSite(loop),
    turns: [...ofLoop].sort(([one], [other]) => one - other),
  }));
}

/** "Loop at labels.py:31: 3 turns decided". What it began with is no turn. */
export function loopText({ name, turns }: Loop): string {
  return `Loop at ${name}: ${count(turns.filter(([turn]) => turn > 0).length, "turn")} decided`;
}

/** "Turn 2: 1 record; 1 row came in". */
export function turnText(turn: number, parts: readonly ExplanationTurn[]): string {
  const records = parts.reduce((sum, { total }) => sum + total, 0);
  const rows = parts.reduce((sum, { rows_total: total }) => sum + total, 0);
  const name = turn === 0 ? "Before the loop" : `Turn ${number(turn)}`;
  return `${name}: ${count(records, "record")}${rows === 0 ? "" : `; ${count(rows, "row")} came in`}`;
}

/** "unchanged to turn 14"; empty where the next turn changed it. */
export const untilText = (turn: number, until: number | undefined): string =>
  until === undefined || until <= turn ? "" : `unchanged to turn ${number(until)}`;

/** "reduceByKey (12) at labels.py:33". */
export const ruleText = ({ name, node_id: node, call_site: site }: ExplanationRule): string =>
  `${name} (${nodeNumber(node)})${site === "" ? "" : ` at ${callSite(site)}`}`;

/** What a rule has kept of a trace. */
export const keptText = ({ rule }: ExplanationRule): string =>
  rule === "winner" ? "what its merges gave back" : "the same records a turn before";

/** "in turn 2 of the loop at labels.py:31". */
export const turnOf = (loop: string | null, turn: number): string =>
  `in turn ${number(turn)} of the loop at ${callSite(loop ?? "")}`;

/** "Both have field 2 'r00037'", and what is said where they share nothing, or nobody knows. */
export function sharedText({ equal, shared }: Meeting): string {
  if (equal === null)
    return "It is not known whether they have the same value: name rows of an output file, or capture values.";
  if (!equal) return "They have nothing in common: no key, no value, no field. What follows is how each came about.";
  return `Both have ${shared.map(({ what, text }) => `${what} '${shortened(text, TITLE_CHARACTERS)}'`).join(", ")}`;
}

/** "They meet in turn 1 of the loop at labels.py:31, at reduceByKey (12)". */
export function meetingText({ meets }: Meeting): string {
  if (meets === null) return "Their explanations share no record.";
  const turn = meets.turn === null ? "" : ` ${turnOf(meets.loop, meets.turn)},`;
  return `They meet${turn} at ${meets.name} (${nodeNumber(meets.node_id)})`;
}

/** "4 rows count for A, 2 for B, 2 for both". */
export const sidesText = ({ a, b, both_total: both }: Meeting): string =>
  `${count(a.total, "row")} ${a.total === 1 ? "counts" : "count"} for A, ${number(b.total)} for B, ${number(both)} for both`;

/** "3 rows are the same, 1 gone, 1 new". */
export const differenceText = ({ same, gone_total: gone, new_total: fresh }: ComparedExplanation): string =>
  `${count(same, "row")} ${same === 1 ? "is" : "are"} the same, ${number(gone)} gone, ${number(fresh)} new`;

/** What was verified, when, and by how many runs. Of other rows than those of the answer: of which. */
export function checkText(check: ExplanationCheck): string {
  const work = `${count(check.runs, "run")}${check.minimal ? "; none of them can be left out" : ""}`;
  if (check.these_rows)
    return `Verified on ${time(check.checked_at)}: the job gives it again on these rows alone; ${work}`;
  const lacking = check.left_out_total > 0 ? `, without ${count(check.left_out_total, "row")} of these` : "";
  return (
    `Verified on ${time(check.checked_at)} of other rows: ${count(check.total, "row")}, ` +
    `${number(check.added_total)} of them not among these${lacking}; ${work}`
  );
}
