// Rows that must be among those of an explanation: whether the record was made of them, and on which way.

import type { DemandedRow } from "../api";
import { type Child, h } from "../dom";
import { notice } from "../states";
import { rowOf, stepOf } from "./rows";

/** Records of a way that are shown. */
const MOST_STEPS = 20;

export const demandedOf = (application: string, rows: readonly DemandedRow[]): HTMLElement =>
  h(
    "section",
    { "aria-label": "Rows that must be among them" },
    h("h2", {}, "Rows that must be among them"),
    rows.map((row) => [
      rowOf(application, row),
      row.note !== "" && notice("caution", row.note),
      wayOf(application, row),
    ]),
  );

/** Into which records the row went, up to the one that is explained. */
function wayOf(application: string, { way }: DemandedRow): Child {
  const steps = way.slice(1);
  if (steps.length === 0) return null;
  const hidden = Math.max(0, steps.length - MOST_STEPS);
  const listed = (part: typeof steps) => part.map((step) => h("li", {}, stepOf(application, step)));
  return h(
    "ol",
    { class: "way", "aria-label": "It went into" },
    listed(steps.slice(0, hidden > 0 ? MOST_STEPS - 1 : MOST_STEPS)),
    hidden > 0 && [h("li", { class: "soft" }, `and ${hidden} more`), listed(steps.slice(-1))],
  );
}
