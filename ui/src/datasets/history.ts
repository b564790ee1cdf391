// The history of a dataset as a table: which run wrote or read it when.

import type { DatasetPage, DatasetUse } from "../api";
import { type Child, h } from "../dom";
import { callSite, errorText, nodeNumber, number, share, time } from "../format";
import { pageLinks } from "../pages";
import { applicationHref, datasetHref, type DatasetRoute, recordsHref } from "../route";
import { table } from "../table";
import { stateColour, stateOf } from "./texts";

export function historyOf({ dataset, history, total, next }: DatasetPage, { query }: DatasetRoute): Child {
  return [
    table<DatasetUse>({
      caption: "Writes and reads, newest first",
      rows: history,
      key: ({ kind, application_id: application, node_ids: nodes }) => [kind, application, ...nodes].join(" "),
      opens: true,
      columns: [
        {
          name: "When",
          kind: "narrow",
          cell: ({ at }) => h("time", { datetime: new Date(at).toISOString() }, time(at)),
        },
        {
          name: "Application",
          cell: ({ application_id: id, name }) => [
            h("a", { href: applicationHref(id) }, name),
            h("div", { class: "id" }, id),
          ],
        },
        { name: "Outcome", cell: outcomeOf },
        { name: "Rows", kind: "count", cell: rowsOf },
        {
          name: "Operation",
          cell: ({ operation, call_site: place }) => [
            operation,
            place !== "" && h("div", { class: "id", title: place }, callSite(place)),
          ],
        },
        { name: "Lineage", cell: lineageOf },
      ],
    }),
    h(
      "nav",
      { class: "pages", "aria-label": "Pages of the history" },
      h("span", { class: "soft" }, share(history.length, total, "write or read", "writes and reads")),
      pageLinks(query, next, (changed) => datasetHref(dataset, changed), { first: "Newest", next: "Older" }),
    ),
  ];
}

const outcomeOf = (use: DatasetUse): Child => [
  h("span", { class: stateColour(use) }, stateOf(use)),
  use.error !== null && h("div", { class: "failed-text" }, errorText(use.error)),
];

/** Rows lead to the records of the operation, if it is one. */
function rowsOf({ application_id: application, node_ids: nodes, rows }: DatasetUse): Child {
  const text = rows === null ? "show" : number(rows);
  const [node] = nodes;
  return node !== undefined && nodes.length === 1
    ? h("a", { href: recordsHref(application, nodeNumber(node)), title: "Show the rows" }, text)
    : rows !== null && text;
}

const lineageOf = ({ state, complete, exact, reason, kind }: DatasetUse): Child => [
  state !== "running" && h("span", { class: complete ? null : "warning" }, complete ? "complete" : "incomplete"),
  kind === "write" &&
    !exact &&
    h(
      "div",
      { class: state === "failed" ? "failed-text" : "warning" },
      state === "failed" ? reason : `not exact: ${reason}`,
    ),
];
