// The steps of a replay, operation by operation: what went in on the left, what came out on the right.

import type { ReplayStep, StepRecord } from "../api";
import { type Child, h } from "../dom";
import { applicationOf, count, nodeNumber } from "../format";
import { traceHref } from "../route";
import { table } from "../table";
import { readable } from "../trace/texts";
import { recordPlace, recordText, rowsOfSteps, type StepRow, stepText } from "./steps";

/** Records that are shown of what went in. */
const SHOWN = 20;

export const stepTables = (steps: readonly ReplayStep[]): Child =>
  rowsOfSteps(steps).map(({ step, rows }) => [
    h("h3", {}, stepText(step), !step.exact && h("span", { class: "warning" }, " · not exact")),
    rows.length > 0 && tableOf(step, rows),
    step.total > rows.length && h("p", { class: "soft" }, `and ${count(step.total - rows.length, "more record")}`),
  ]);

const tableOf = (step: ReplayStep, rows: readonly StepRow[]): HTMLElement =>
  table<StepRow>({
    caption: stepText(step),
    rows,
    columns: [
      {
        name: "Went in",
        isUsed: rows.some(({ went }) => went.length > 0),
        cell: ({ went }) => [
          went.slice(0, SHOWN).map((record) => h("div", {}, placed(recordPlace(record), record))),
          went.length > SHOWN && h("div", { class: "soft" }, `and ${count(went.length - SHOWN, "more record")}`),
        ],
      },
      { name: "Came out", cell: ({ came }) => placed(placeOf(step, came), came) },
    ],
  });

/** It leads to the trace of the record in the replay. */
function placeOf({ node_id: node }: ReplayStep, record: StepRecord): Child {
  const place = recordPlace(record);
  if (record.record_id === null) return h("strong", { class: "is-failed" }, place);
  return h("a", { href: traceHref(applicationOf(node), { record: record.record_id, node: nodeNumber(node) }) }, place);
}

function placed(place: Child, record: StepRecord): Child {
  const text = recordText(record);
  return [place, text !== null && [" ", h("code", {}, readable(text))]];
}
