// What influences and sifts of one record have found, as `lineage influence` and `lineage sift` gave it.

import type { FailingOutput, Influence, InfluentialRow, Sift, SiftedRow } from "../api";
import { type Child, h } from "../dom";
import { count, number } from "../format";
import { traceHref } from "../route";
import type { TraceRecord } from "../trace/results";
import { readable } from "../trace/texts";
import type { Way } from "./sentences";

/** Rows of each that are shown. */
const SHOWN = 5;

export const influencesOf = ({ record }: Way, influences: readonly Influence[]): Influence[] =>
  influences.filter(({ output }) => isAt(output, record));

export const siftsOf = ({ record }: Way, sifts: readonly Sift[]): Sift[] =>
  sifts.filter(({ outputs }) => outputs.some((output) => isAt(output, record)));

const isAt = ({ path, row }: FailingOutput, record: TraceRecord | null): boolean =>
  record?.source != null && record.source.path === path && record.source.row === row;

/** How far the output moves without a row: "gone", "6.615", "about 3". */
export function changeText({ change, estimated, failed, without }: InfluentialRow): string {
  if (estimated) return `about ${number(change ?? 0)}`;
  if (failed) return "the job failed";
  if (without === null) return "gone";
  return change === null ? "other words" : number(change);
}

/** "without each of its 300 input rows". What is not sure is said. */
export const influenceText = ({ total, exact }: Influence): string =>
  `without each of its ${count(total, "input row")}${exact ? "" : " (not exact)"}:`;

/** "1 of 41 input rows is enough for: a row that ...". */
export const siftText = ({ total, of, test, minimal }: Sift): string =>
  `${number(total)} of ${count(of, "input row")} ${total === 1 ? "is" : "are"} enough for ${test}` +
  (minimal ? ":" : " (fewer may do):");

export const influenceItem = (application: string, influence: Influence): Child =>
  h(
    "li",
    {},
    `Influence ${influence.influence}, `,
    influenceText(influence),
    h(
      "ul",
      {},
      influence.inputs.slice(0, SHOWN).map((row) => h("li", {}, barOf(influence, row), rowOf(application, row))),
    ),
    notesOf(influence.notes),
  );

export const siftItem = (application: string, sift: Sift): Child =>
  h(
    "li",
    {},
    `Sift ${sift.sift}, `,
    siftText(sift),
    h(
      "ul",
      {},
      sift.rows.slice(0, SHOWN).map((row) => h("li", {}, rowOf(application, row))),
    ),
    notesOf(sift.notes),
  );

/** The change as a word, and a bar beside those of the other rows. */
function barOf({ inputs }: Influence, row: InfluentialRow): Child {
  const most = Math.max(...inputs.map(({ change }) => change ?? 0));
  const text = changeText(row);
  return [
    row.change !== null &&
      most > 0 &&
      h("meter", { max: String(most), value: String(row.change), "aria-label": `moves it by ${text}` }),
    " ",
    h("strong", {}, text),
    " ",
  ];
}

const rowOf = (application: string, { path, row, line, text, record }: InfluentialRow | SiftedRow): Child =>
  path === null || row === null
    ? record
    : [h("a", { href: traceHref(application, { path, row }) }, `${path}:${line}`), ` ${readable(text ?? "")}`];

const notesOf = (notes: readonly string[]): Child => notes.map((note) => h("p", { class: "small soft" }, note));
