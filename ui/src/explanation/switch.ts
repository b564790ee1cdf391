// The switch between all of a record's lineage and the few rows that decided what it is.

import { h } from "../dom";
import { explanationHref, type Start, traceHref } from "../route";

export function extentSwitch(application: string, start: Start, current: "everything" | "decisive"): HTMLElement {
  const way = (name: string, address: string, isCurrent: boolean) =>
    h("a", { href: address, "aria-current": isCurrent ? "true" : null }, name);
  return h(
    "span",
    { class: "switch", role: "group", "aria-label": "How much of its lineage" },
    way("Everything", traceHref(application, start), current === "everything"),
    way("Only what decided it", explanationHref(application, start), current === "decisive"),
  );
}
