// The records of a node: one table, used by the page of a node and by traces.

import { ask } from "./client.js";
import { count, h, nodeNumber, notice, number, route } from "./dom.js";

/** Where a record's own page is. */
export const recordRoute = (application, nodeId, record) =>
  route(["app", application, "trace"], {
    node: nodeNumber(nodeId),
    partition: record.partition,
    offset: record.offset,
  });

const has = (records, part) => records.some((record) => record[part] !== undefined);

/** A table of records; columns that no record fills are left out. `mark` dresses a row. */
export function recordTable(application, nodeId, records, caption, mark = () => ({})) {
  const columns = [
    ["Record", (record) => h("a", { href: recordRoute(application, nodeId, record) }, record.record_id)],
    has(records, "key") && ["Key", (record) => text(record.key)],
    has(records, "value") && ["Value", (record) => text(record.value)],
    has(records, "source") && ["Row", (record) => record.source && sourceText(record.source)],
    has(records, "source") && ["Where", (record) => record.source && sourcePlace(record.source)],
  ].filter(Boolean);
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      {},
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, columns.map(([name]) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        {},
        records.map((record) =>
          h("tr", mark(record), columns.map(([name, cell]) => h("td", { class: name.toLowerCase() }, cell(record)))),
        ),
      ),
    ),
  );
}

const text = (value) => (value === undefined ? null : h("code", {}, value));

const sourceText = ({ text: row, warning }) => [
  row === null ? h("em", {}, "no text to show") : h("code", {}, row),
  warning && h("div", { class: "warning" }, `⚠ ${warning}`),
];

const sourcePlace = ({ path, line }) => h("span", { title: path }, path.slice(path.lastIndexOf("/") + 1), `:${line}`);

/** The page of one node: what it is, a search, and its records page by page. */
export async function nodePage(application, name, asked, signal) {
  const parameters = {};
  for (const part of ["text", "key", "partition", "offset", "cursor", "limit"]) {
    if (asked.get(part)) parameters[part] = asked.get(part);
  }
  const [graph, page] = await Promise.all([
    ask([application, "graph"], {}, { signal }),
    ask([application, "nodes", name, "records"], { limit: 50, ...parameters }, { signal }),
  ]);
  const node = graph.nodes.find((each) => each.node_id === page.node_id) ?? unknownNode(name);
  const isFiltered = Boolean(parameters.text || parameters.key || parameters.partition);
  const here = (changes) => route(["app", application, "nodes", name], { ...parameters, ...changes });
  const found = isFiltered ? ["match", "matches"] : ["record"];
  const total = page.total === null ? `${isFiltered ? "Matches" : "Records"} not counted` : count(page.total, ...found);
  return {
    title: `${node.name} (${node.node})`,
    content: [
      h("h1", { tabindex: -1 }, node.name, " ", h("small", {}, `${node.kind} ${node.node}`)),
      facts(node),
      !node.exact && notice("care", `Not exact: ${node.reason}. Traces through here list all that may have taken part.`),
      search(application, name, parameters),
      h("p", { class: "total" }, `${total}${page.records.length > 0 ? `, ${number(page.records.length)} on this page` : ""}`),
      page.records.length > 0
        ? recordTable(application, page.node_id, page.records, `Records of ${node.name}`)
        : notice("empty", page.next ? "No match so far: see the next page." : isFiltered ? "No record matches." : "This node has no records."),
      ...(page.warnings ?? []).map((each) => notice("care", each)),
      h(
        "nav",
        { class: "pages", "aria-label": "Pages" },
        parameters.cursor && h("a", { href: here({ cursor: "" }) }, "First page"),
        page.next && h("a", { href: here({ cursor: page.next }), rel: "next" }, "Next page"),
      ),
    ],
  };
}

/** A node that answers but is not in the graph. */
const unknownNode = (name) => ({ name: `node ${name}`, node: name, kind: "operator", exact: true });

function facts(node) {
  const known = [
    ["Operation", node.description],
    ["Called at", node.call_site],
    ["Dataset", node.dataset && `${node.dataset.name} (${node.dataset.format}, ${node.dataset.namespace})`],
  ].filter(([, value]) => value);
  return known.length > 0 && h("dl", {}, known.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function search(application, name, parameters) {
  const field = (id, label, attributes = {}) =>
    h("label", {}, h("span", {}, label), h("input", { name: id, value: parameters[id] ?? "", ...attributes }));
  return h(
    "form",
    {
      role: "search",
      submit: (event) => {
        event.preventDefault();
        location.hash = route(["app", application, "nodes", name], Object.fromEntries(new FormData(event.target)));
      },
    },
    field("text", "Text in the record", { type: "search", size: 30 }),
    field("key", "Key is exactly", { type: "search" }),
    field("partition", "Partition", { type: "number", min: 0, step: 1, class: "short" }),
    field("offset", "From its offset", { type: "number", min: 0, step: 1, class: "short" }),
    h("button", { type: "submit" }, "Search"),
  );
}
