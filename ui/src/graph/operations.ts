// The operations of an application as a table, below its drawing.

import type { Graph, Node as Operation } from "../api";
import { type Child, h } from "../dom";
import { callSite, count, errorText, expressionText, nodeNumber, number } from "../format";
import { passedRows } from "../passthrough";
import { recordsHref, suspectsHref } from "../route";
import { table } from "../table";
import { cut } from "./labels";

/** Of an expression in the table; one that points at it reads all of it. */
const MOST_CHARACTERS = 120;

/** `unusual` is how many tasks of an operation behave oddly. `pointed` gets the one that the reader points at. */
export function operationTable(
  application: string,
  graph: Graph,
  unusual: ReadonlyMap<string, number>,
  pointed: (nodeId: string | null, isRevealed: boolean) => void,
): HTMLElement {
  const from = new Map<string, string[]>();
  const rows = passedRows(graph);
  for (const { source, target } of graph.edges) from.set(target, [...(from.get(target) ?? []), nodeNumber(source)]);
  const element = table<Operation>({
    caption: "Operations",
    rows: graph.nodes,
    key: ({ node_id }) => node_id,
    opens: true,
    columns: [
      { name: "No.", kind: "count", cell: ({ node }) => node },
      {
        name: "Operation",
        cell: (operation) => [
          h("a", { href: recordsHref(application, operation.node) }, operation.name),
          expressionsOf(operation),
          operation.dataset !== null && h("div", { class: "id" }, operation.dataset.name),
          operation.call_site !== "" &&
            h("div", { class: "id", title: operation.call_site }, callSite(operation.call_site)),
          h("div", { class: operation.state === "failed" ? "failed-text" : "warning" }, reservation(operation)),
          operation.exact && operation.reason !== "" && h("div", { class: "soft" }, operation.reason),
        ],
      },
      { name: "Kind", cell: ({ kind }) => kind },
      {
        name: "Records",
        kind: "count",
        cell: ({ node_id, records }) =>
          records !== null
            ? number(records)
            : rows.has(node_id) && h("span", { class: "soft" }, count(rows.get(node_id) ?? 0, "row")),
      },
      {
        name: "Unusual",
        isUsed: unusual.size > 0,
        cell: ({ node_id }) =>
          unusual.has(node_id) &&
          h("a", { href: suspectsHref(application) }, `● ${count(unusual.get(node_id) ?? 0, "suspect")}`),
      },
      { name: "From", cell: ({ node_id }) => (from.get(node_id) ?? []).join(", ") },
    ],
  });
  element.classList.add("operations");
  const point = (event: Event) => {
    const row = event.target instanceof Element ? event.target.closest("tr") : null;
    pointed(row?.dataset.key ?? null, event.type === "focusin");
  };
  element.addEventListener("mouseover", point);
  element.addEventListener("focusin", point);
  element.addEventListener("mouseleave", () => pointed(null, false));
  return element;
}

function expressionsOf(operation: Pick<Operation, "name" | "description" | "dataset">): Child {
  const text = expressionText(operation);
  return text !== "" && h("div", { class: "small", title: text }, cut(text, MOST_CHARACTERS));
}

/** What must be known of an operation before one relies on it. */
export function reservation({ state, error, exact, reason }: Operation): string | false {
  if (state === "failed") return error === null ? "failed" : `failed: ${errorText(error)}`;
  if (state === "aborted") return "cancelled";
  return !exact && `not exact: ${reason}`;
}
