// One record's way: what it came from above, the record itself, what became of it below.

import { address, ask } from "./client.js";
import { count, h, nodeNumber, notice, number, route } from "./dom.js";
import { depths } from "./graph.js";
import { recordTable } from "./records.js";

const STARTS = ["record", "node", "partition", "offset", "key", "path", "row"];
const OPTIONS = ["to", "depth", "limit", "cursor"];
const LIMIT = 50;

/** The page of one record. `asked` holds the API's own parameters; without a direction it shows both. */
export async function tracePage(application, asked, signal) {
  const given = Object.fromEntries([...STARTS, ...OPTIONS].filter((name) => asked.has(name)).map((name) => [name, asked.get(name)]));
  const only = asked.get("direction");
  const directions = only ? [only] : ["backward", "forward"];
  const questions = directions.map((direction) => ({ limit: LIMIT, ...given, values: true, direction }));
  const [graph, ...traces] = await Promise.all([
    ask([application, "graph"], {}, { signal }),
    ...questions.map((each) => ask([application, "trace"], each, { signal })),
  ]);
  const depth = depths(graph.nodes.map((node) => node.node_id), graph.edges);

  const first = traces[0];
  const start = first.nodes.find((node) => node.node_id === first.start_node) ?? first.nodes[0];
  const title = first.start.length === 1 ? first.start[0].record_id : count(first.start.length, "record");
  const parts = new Map(traces.map((trace, i) => [trace.direction, part(application, trace, questions[i], depth)]));
  const shownStart = { ...start, records: start.records.length > 0 ? start.records : first.start };
  const content = h(
    "div",
    { class: "way" },
    parts.get("backward"),
    h("section", { class: "start" }, h("h2", {}, first.start.length === 1 ? "The record" : "The records"), card(application, shownStart)),
    parts.get("forward"),
  );
  lightUp(content, traces.flatMap((trace) => trace.flows));
  return {
    title: `${title} of ${start.name}`,
    content: [
      h("h1", { tabindex: -1 }, title, " ", h("small", {}, `of ${start.name} (${nodeNumber(first.start_node)})`)),
      directionLinks(application, given, only),
      content,
      values(application, first),
    ],
  };
}

function directionLinks(application, given, only) {
  const start = Object.fromEntries(Object.entries(given).filter(([name]) => name !== "cursor"));
  const link = (direction, label) =>
    h(
      "a",
      {
        href: route(["app", application, "trace"], { ...start, direction }),
        "aria-current": (only ?? "") === direction && "true",
      },
      label,
    );
  return h(
    "nav",
    { class: "tabs", "aria-label": "Direction" },
    link("", "Whole way"),
    link("backward", "Where it came from"),
    link("forward", "What became of it"),
  );
}

/** One direction. The way reads as the data went, from top to bottom, whichever way it was traced. */
function part(application, trace, question, depth) {
  const isBackward = trace.direction === "backward";
  const others = trace.nodes.filter((node) => node.node_id !== trace.start_node);
  const layers = new Map();
  const place = ({ node_id: id }) => [depth.get(id) ?? 0, Number(nodeNumber(id))];
  const inOrder = others.map((node) => [...place(node), node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [level, , node] of inOrder) {
    layers.set(level, [...(layers.get(level) ?? []), card(application, node)]);
  }
  const nothing = isBackward ? "Nothing came before it." : "Nothing was made of it.";
  return h(
    "section",
    { class: trace.direction },
    h("h2", {}, isBackward ? "Where it came from" : "What became of it"),
    cautions(application, trace, question),
    others.length > 0 ? [...layers.values()].map((cards) => h("div", { class: "layer" }, cards)) : notice("empty", nothing),
    others.length > 0 && tools(application, trace, question),
  );
}

/** What must be said before anyone relies on the list. */
function cautions(application, trace, question) {
  const inexact = trace.nodes.filter((node) => !node.exact).map((node) => `${node.name} (${nodeNumber(node.node_id)})`);
  const through = inexact.length > 0 ? ` through ${inexact.join(", ")}` : "";
  return [
    !trace.complete && notice("care", "Incomplete: the application still runs, or some of its lineage has not arrived or was dropped. Records may be missing here."),
    !trace.exact && notice("care", `Not exact: the way${through} is known only as a bound. What is listed may have taken part; nothing else has.`),
    trace.truncated &&
      notice(
        "care",
        `Truncated: at most ${number(question.limit)} records of each operation are listed here. The totals count all of them. `,
        question.cursor && h("a", { href: here(application, question, "") }, "First page"),
        question.cursor && trace.next && " · ",
        trace.next && h("a", { href: here(application, question, trace.next) }, "Next page"),
      ),
  ];
}

const here = (application, { values: _, limit, ...question }, cursor) =>
  route(["app", application, "trace"], { ...question, limit: Number(limit) === LIMIT ? "" : limit, cursor });

function card(application, node) {
  const listed = node.records.length;
  const total = listed === node.total ? count(node.total, "record") : `${count(node.total, "record")}, ${number(listed)} listed`;
  const mark = (record) => ({ "data-hash": `${node.node_id}#${record.record_id}` });
  return h(
    "article",
    { class: `card ${node.kind}${node.exact ? "" : " inexact"}` },
    h(
      "h3",
      {},
      h("a", { href: route(["app", application, "nodes", nodeNumber(node.node_id)]) }, node.name),
      h("span", { class: "number" }, nodeNumber(node.node_id)),
      h("span", { class: "total" }, total),
      !node.exact && h("span", { class: "tag" }, "not exact"),
    ),
    listed > 0 && recordTable(application, node.node_id, node.records, `Records at ${node.name}`, mark),
  );
}

function tools(application, trace, { values: _, ...question }) {
  const said = h("p", { role: "status" });
  const put = async (event) => {
    event.target.disabled = true;
    said.replaceChildren("Writing …");
    try {
      const { cursor: __, limit: ___, ...whole } = question;
      const made = await ask([application, "trace", "graph"], whole, { method: "POST" });
      said.replaceChildren(
        `${count(made.records, "record")} and ${count(made.links, "link")} stand in Neo4j${made.truncated ? ", which is not all of them" : ""}. Show them in its Browser: `,
        h("code", {}, made.query),
      );
    } catch (problem) {
      said.replaceChildren(`${problem.title}: ${problem.message}`);
    } finally {
      event.target.disabled = false;
    }
  };
  return h(
    "div",
    { class: "tools" },
    h("button", { type: "button", click: put }, "Put into Neo4j"),
    h("a", { href: address([application, "trace"], { ...question, values: true }) }, "This answer as JSON"),
    said,
  );
}

/** Values along the way, asked for only when someone opens them. */
function values(application, trace) {
  if (trace.start.length !== 1) return null;
  const list = h("div", {}, "Loading …");
  const load = async ({ target }) => {
    if (!target.open || target.dataset.loaded) return;
    target.dataset.loaded = "true";
    try {
      const asked = { record: trace.start[0].record_id, node: nodeNumber(trace.start_node) };
      const { captured, how, steps } = await ask([application, "values"], asked);
      const lines = steps.map((step) =>
        h("li", {}, h("strong", {}, `${step.name} (${nodeNumber(step.node_id)})`), ` ${step.record_id} `, h("code", {}, step.value)),
      );
      list.replaceChildren(...[captured ? h("ol", {}, lines) : "No values were captured. ", how].filter(Boolean));
    } catch (problem) {
      list.replaceChildren(`${problem.title}: ${problem.message}`);
      delete target.dataset.loaded;
    }
  };
  return h("details", { toggle: load }, h("summary", {}, "Its values on the way"), list);
}

/** Pointing at a record lights up all that it is connected with. */
function lightUp(root, flows) {
  const rows = new Map();
  for (const row of root.querySelectorAll("[data-hash]")) rows.set(row.dataset.hash, row);
  const [inputs, outputs] = [new Map(), new Map()];
  for (const { hash_in, hash_out } of flows) {
    inputs.set(hash_out, [...(inputs.get(hash_out) ?? []), hash_in]);
    outputs.set(hash_in, [...(outputs.get(hash_in) ?? []), hash_out]);
  }
  const reach = (hash, links) => {
    const seen = new Set([hash]);
    for (const each of seen) for (const next of links.get(each) ?? []) seen.add(next);
    return seen;
  };
  const light = (event) => {
    const hash = event.target.closest?.("[data-hash]")?.dataset.hash;
    const lit = hash ? new Set([...reach(hash, inputs), ...reach(hash, outputs)]) : new Set();
    for (const [each, row] of rows) row.classList.toggle("lit", lit.has(each));
    root.classList.toggle("lighting", lit.size > 1);
  };
  for (const event of ["pointerover", "pointerleave", "focusin"]) root.addEventListener(event, light);
}
