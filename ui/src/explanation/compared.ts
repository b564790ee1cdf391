// What explains the same record in another run: rows of the one alone, and of the other.

import type { ComparedExplanation, ExplainedRow } from "../api";
import { type Child, h } from "../dom";
import { count, nodeNumber } from "../format";
import { applicationHref } from "../route";
import { notice } from "../states";
import { recordOf, rowOf } from "./rows";
import { differenceText } from "./sentences";

/** Records that are shown. */
const MOST_RECORDS = 3;

export const comparedOf = (application: string, compared: ComparedExplanation): HTMLElement => {
  const { application_id: other, name } = compared;
  return h(
    "section",
    { "aria-label": "In the other run" },
    h("h2", {}, "In ", h("a", { href: applicationHref(other) }, name || other)),
    compared.starts.map(({ node_id: id, records }) =>
      records.slice(0, MOST_RECORDS).map((record) => h("div", {}, recordOf(other, nodeNumber(id), record))),
    ),
    h("p", {}, h("strong", {}, differenceText(compared))),
    !compared.complete && notice("caution", "The lineage of one of the runs is not complete: rows may be missing."),
    compared.reasons.map((reason) => notice("caution", reason)),
    listOf(application, "Gone", compared.gone, compared.gone_total),
    listOf(other, "New", compared.new, compared.new_total),
  );
};

const listOf = (application: string, title: string, rows: readonly ExplainedRow[], total: number): Child =>
  total > 0 && [
    h("h3", {}, title),
    rows.map((row) => rowOf(application, row)),
    total > rows.length && h("div", { class: "soft" }, `and ${count(total - rows.length, "more row")}`),
  ];
