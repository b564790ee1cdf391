// What is said of an explanation, in words. Pure.

import type { ExplainedRow, Explanation, ExplanationRule, ExplanationTurn } from "../api";
import { callSite, count, nodeNumber, number } from "../format";
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
export const placeOf = ({ path, line, record_id: id }: ExplainedRow): string =>
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
