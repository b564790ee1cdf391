// The page: routes in the hash, so that every view can be sent to someone and the back button works.
//   #/                               applications
//   #/app/APP                        graph of an application
//   #/app/APP/nodes/NODE?...         records of a node (the API's parameters)
//   #/app/APP/trace?...              one record's way (the API's parameters)

import { ask, keepToken } from "./client.js";
import { count, duration, h, notice, number, route, time } from "./dom.js";
import { draw } from "./graph.js";
import { nodePage } from "./records.js";
import { tracePage } from "./trace.js";

const view = document.getElementById("view");
const trail = document.getElementById("trail");
const status = document.getElementById("status");
let running = new AbortController();

async function applicationsPage(cursor, signal) {
  const { applications, next } = await ask([], cursor ? { cursor } : {}, { signal });
  const rows = applications.map((each) =>
    h(
      "tr",
      {},
      h("td", {}, h("a", { href: route(["app", each.application_id]) }, each.name), h("div", { class: "id" }, each.application_id)),
      h("td", {}, time(each.started)),
      h("td", {}, each.ended === null ? "running" : `ended after ${duration(each.ended - each.started)}`),
      h("td", {}, completeness(each)),
      h("td", { class: "count" }, each.counters.flows === undefined ? "" : number(each.counters.flows)),
    ),
  );
  const head = ["Application", "Started", "State", "Lineage", "Flows"].map((name) => h("th", { scope: "col", class: name === "Flows" && "count" }, name));
  const table = h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "unseen" }, "Applications"), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
  const none = notice("empty", "No application has sent lineage yet. Run a job with ", h("code", {}, "--conf spark.lineage.enabled=true"), ".");
  return {
    title: "Applications",
    content: [h("h1", { tabindex: -1 }, "Applications"), applications.length > 0 ? table : none, next && h("p", {}, h("a", { href: route([], { cursor: next }) }, "Older applications"))],
  };
}

/** Whether all lineage is there, in words. */
function completeness({ complete, missing_blocks: missing, state, counters }) {
  const dropped = counters.dropped ?? 0;
  const lacks = [missing > 0 && `${count(missing, "block")} missing`, dropped > 0 && `${number(dropped)} dropped`];
  if (complete) return "complete";
  const why = lacks.filter(Boolean).join(", ") || (state === "running" ? "still running" : "not all has arrived");
  return h("span", { class: "warning" }, `incomplete: ${why}`);
}

async function applicationPage(id, signal) {
  const [application, graph] = await Promise.all([ask([id], {}, { signal }), ask([id, "graph"], {}, { signal })]);
  const { name, started, ended } = application;
  const lasted = ended === null ? "still running" : `ended after ${duration(ended - started)}`;
  const counters = Object.entries(application.counters).map(([word, value]) => `${word} ${number(value)}`);
  return {
    title: name,
    content: [
      h("h1", { tabindex: -1 }, name, " ", h("small", {}, id)),
      h("p", {}, "Started ", time(started), `, ${lasted}. Lineage `, completeness(application), "."),
      application.missing && h("p", {}, "What is missing: ", application.missing, "."),
      counters.length > 0 && h("p", { class: "total" }, counters.join(" · ")),
      graph.nodes.length > 0
        ? [
            h("p", {}, "Choose an operation to see its records. Numbers on the lines count flows; a dashed box is not exact."),
            h("div", { class: "canvas", tabindex: 0, role: "region", "aria-label": "Graph, scrollable" }, draw(id, graph)),
            h("details", {}, h("summary", {}, "The same as a table"), nodeTable(id, graph)),
          ]
        : notice("empty", "This application has registered no operation yet."),
    ],
  };
}

function nodeTable(id, graph) {
  const head = ["Number", "Operation", "Kind", "Records", "Gets records from", "Called at", "Exact"];
  const rows = graph.nodes.map((node) => {
    const from = graph.edges.filter((edge) => edge.target === node.node_id).map(({ source }) => source.slice(source.lastIndexOf("#") + 1));
    return h(
      "tr",
      {},
      h("td", {}, node.node),
      h("td", {}, h("a", { href: route(["app", id, "nodes", node.node]) }, node.name), node.dataset && h("div", { class: "id" }, node.dataset.name)),
      h("td", {}, node.kind),
      h("td", { class: "count" }, node.records === null ? "not counted" : number(node.records)),
      h("td", {}, from.join(", ")),
      h("td", {}, node.call_site),
      h("td", {}, node.exact ? "yes" : `no: ${node.reason}`),
    );
  });
  return h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "unseen" }, "Operations"), h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)));
}

/** What the hash asks for: [page, places on the trail]. */
function find(hash, signal) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [word, id, place, node] = path.split("/").map(decodeURIComponent);
  const asked = new URLSearchParams(query);
  const home = ["Applications", route([])];
  if (!word) return [applicationsPage(asked.get("cursor"), signal), []];
  const application = [id, route(["app", id])];
  if (word === "app" && id && !place) return [applicationPage(id, signal), [home]];
  if (word === "app" && place === "nodes" && node) return [nodePage(id, node, asked, signal), [home, application]];
  if (word === "app" && place === "trace") {
    const at = asked.get("node") && [`node ${asked.get("node")}`, route(["app", id, "nodes", asked.get("node")])];
    return [tracePage(id, asked, signal), [home, application, at].filter(Boolean)];
  }
  return [Promise.resolve({ title: "Not there", content: [h("h1", { tabindex: -1 }, "Not there"), h("p", {}, "This page has no such view.")] }), [home]];
}

async function show() {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  view.setAttribute("aria-busy", "true");
  status.textContent = "Loading";
  try {
    const [page, places] = find(location.hash, signal);
    trail.replaceChildren(...places.map(([name, href]) => h("a", { href }, name)));
    const { title, content } = await page;
    if (signal.aborted) return;
    document.title = `${title} · Lineage Master`;
    view.replaceChildren(...content.flat().filter(Boolean));
    status.textContent = title;
  } catch (problem) {
    if (signal.aborted) return;
    fail(problem);
  }
  view.removeAttribute("aria-busy");
  scrollTo(0, 0);
  view.querySelector("h1")?.focus({ preventScroll: true });
}

function fail(problem) {
  if (problem.status === 401) return askForToken(problem);
  const title = problem.title ?? "This page failed";
  document.title = `${title} · Lineage Master`;
  status.textContent = title;
  view.replaceChildren(
    h("h1", { tabindex: -1 }, title),
    notice("failure", problem.message),
    h("button", { type: "button", click: show }, "Try again"),
  );
}

/** What stands in the place of every view until the service's token is there. */
function askForToken(problem) {
  document.title = "Token · Lineage Master";
  status.textContent = "This service asks for its token";
  const given = h("input", { name: "token", type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const enter = (event) => {
    event.preventDefault();
    // A header takes no other characters; the service would refuse these as well.
    keepToken(given.value.trim().replace(/[^\x21-\x7e]/g, ""));
    show();
  };
  view.replaceChildren(
    h("h1", { tabindex: -1 }, "This service asks for its token"),
    ...(problem.message.startsWith("That is not") ? [notice("failure", problem.message)] : []),
    h("p", {}, "Who runs ", h("code", {}, "lineage serve"), " knows it: it says at its start where the token is. It is kept until you close this tab."),
    h("form", { submit: enter }, h("label", {}, "Token ", given), " ", h("button", {}, "Go on")),
  );
}

addEventListener("hashchange", show);
show();
