// Which rows are needed together, and which are alternatives: an expression.

import { h } from "../dom";

export const howOf = (how: string): HTMLElement =>
  h(
    "section",
    { "aria-label": "Which rows together" },
    h("h2", {}, "Which rows together"),
    how.split("\n").map((line) => h("p", { class: "expression" }, h("code", {}, line))),
    h("p", { class: "soft" }, "· joins rows that are needed together; + stands between alternatives."),
  );
