// What a command has verified, as it was recorded: of exactly these rows, or of others.

import type { Explanation, ExplanationCheck } from "../api";
import { type Child, h } from "../dom";
import { count } from "../format";
import { rowOf } from "./rows";
import { checkText } from "./sentences";

/** Checks of other rows that are shown. */
const MOST_CHECKS = 2;

export function checksOf(application: string, { checks }: Explanation): Child[] {
  const others = checks.filter(({ these_rows: areThese }) => !areThese);
  return [
    checks
      .filter(({ these_rows: areThese }) => areThese)
      .slice(0, 1)
      .map(verifiedOf),
    others.slice(0, MOST_CHECKS).map((check) => otherRowsOf(application, check)),
  ];
}

const verifiedOf = (check: ExplanationCheck): Child => [
  h("p", { class: "verified" }, h("span", { "aria-hidden": "true" }, "✓ "), checkText(check)),
  check.notes.map((note) => h("p", { class: "soft" }, note)),
];

/** It says nothing of the rows of the answer alone, so it has no mark. */
const otherRowsOf = (application: string, check: ExplanationCheck): HTMLElement =>
  h(
    "details",
    { class: "other-rows" },
    h("summary", {}, checkText(check)),
    check.added.map((row) => rowOf(application, row)),
    check.added_total > check.added.length &&
      h("div", { class: "soft" }, `and ${count(check.added_total - check.added.length, "more row")}`),
    check.notes.map((note) => h("p", { class: "soft" }, note)),
  );
