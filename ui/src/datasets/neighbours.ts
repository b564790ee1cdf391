// What is before and behind a dataset: a drawing from left to right, and the same as a table beside it.

import type { DatasetGraph, DatasetGraphNode } from "../api";
import { type Child, h, replace } from "../dom";
import { count, time } from "../format";
import { type Drawing, makeDrawing } from "../graph/drawing";
import { heightOf } from "../graph/extent";
import { layoutGraph } from "../layout";
import { href, queryOf } from "../route";
import { notice } from "../states";
import { table } from "../table";
import { drawingTools } from "../tools";
import type { ViewContext } from "../view";
import { datasetLook } from "./look";
import { centreOf, layoutRequestOf, type Net, netOf, nodeName, runsText, sideOf, sizeOf } from "./picture";

const HELP =
  "Arrow keys move between boxes, Enter opens one, + and - zoom, 0 shows all, Escape clears the selection. " +
  "The table below has the same content.";
/** The drawing is as high as what it shows. */
const HEIGHTS = { least: 130, most: 420 };

export interface Neighbours {
  readonly element: HTMLElement;
  show(graph: DatasetGraph): Promise<void>;
  close(): void;
}

export function makeNeighbours(context: ViewContext): Neighbours {
  const element = h("section", { "aria-label": "Before and after" });
  const details = h("p", { class: "details" });
  const box = h("div", {
    class: "canvas",
    tabindex: 0,
    role: "application",
    "aria-label": "Graph of datasets and jobs",
    "aria-describedby": "net-help",
  });
  let canvas: Drawing<Net> | null = null;
  let layoutRun = new AbortController();
  let shown = "";

  const open = (node: DatasetGraphNode) => context.navigate(routeOf(node));
  const showDetails = (node: DatasetGraphNode | null, byKey: boolean) => {
    replace(
      details,
      node === null
        ? h("span", { class: "soft" }, "Point at a box to see its details; click it to open it.")
        : detailsOf(node),
    );
    if (node !== null && byKey) context.announce(details.textContent ?? "");
  };
  const build = (graph: DatasetGraph) => {
    replace(
      element,
      h("h2", {}, "Before and after"),
      h(
        "div",
        { class: "tools" },
        drawingTools(
          () => canvas,
          () => `${nodeName(centreOf(graph) ?? { kind: "dataset", name: "dataset" })}-lineage`,
        ),
        h("span", { class: "soft small" }, legend(graph)),
      ),
      graph.truncated && notice("caution", `There are more: the nearest ${graph.nodes.length} are shown.`),
      h("div", { class: "drawn" }, box, details, h("p", { class: "soft small help", id: "net-help" }, HELP)),
      h(
        "details",
        {},
        h("summary", {}, `The same as a table: ${count(graph.nodes.length - 1, "neighbour")}`),
        tableOf(graph, (id, isRevealed) => canvas?.point(id, isRevealed)),
      ),
    );
    showDetails(null, false);
  };

  return {
    element,
    async show(graph) {
      const content = JSON.stringify(graph);
      const centre = centreOf(graph);
      if (content === shown || centre === null) return;
      shown = content;
      layoutRun.abort();
      layoutRun = new AbortController();
      const { signal } = layoutRun;
      if (graph.nodes.length === 1) {
        replace(element, h("h2", {}, "Before and after"), notice("empty", "No job connects it with other datasets."));
        return;
      }
      build(graph);
      box.setAttribute("aria-busy", "true");
      delete box.dataset.elements;
      const net = netOf(graph);
      const frame = { width: box.clientWidth, height: HEIGHTS.most };
      const placed = await layoutGraph({ ...layoutRequestOf(net), frame }, signal).catch((error: unknown) => {
        if (signal.aborted) return null;
        throw error;
      });
      if (placed === null) return;
      box.style.height = `${heightOf(net.boxes, placed.boxes, sizeOf, box.clientWidth, HEIGHTS)}px`;
      canvas?.close();
      canvas = makeDrawing(box, datasetLook(centre.id), { onOpen: open, current: showDetails });
      await canvas.show(net, placed);
      if (signal.aborted) return;
      box.removeAttribute("aria-busy");
      box.dataset.elements = String(net.boxes.length + net.lines.length); // for who measures
    },
    close() {
      layoutRun.abort();
      canvas?.close();
    },
  };
}

/** A dataset leads to its page, a job to its latest application. */
function routeOf({ kind, namespace, name, application_id: application }: DatasetGraphNode) {
  const query = new URLSearchParams();
  if (kind === "dataset") return { view: "dataset", namespace, name, query } as const;
  if (application !== null) return { view: "application", application, query } as const;
  return { view: "applications", query: queryOf({ text: name }) } as const;
}

function legend({ nodes, edges }: DatasetGraph): string {
  return [
    "Lines: from what was read to what was written",
    edges.some(({ exact }) => !exact) && "dashed: only possible",
    nodes.some(({ kind, failed_runs: failed }) => kind === "job" && failed > 0) && "red: a job with failed runs",
  ]
    .filter((part) => part !== false)
    .join(" · ");
}

function detailsOf(node: DatasetGraphNode): Child {
  const parts = [
    node.kind,
    node.kind === "dataset" && `${node.namespace} ${node.name}`,
    runsText(node),
    node.at !== null && `latest ${time(node.at)}`,
    node.remark,
  ];
  return [h("strong", {}, nodeName(node)), " ", parts.filter(Boolean).join(" · ")];
}

function tableOf(graph: DatasetGraph, point: (id: string | null, isRevealed: boolean) => void): HTMLElement {
  const names = new Map(graph.nodes.map((node) => [node.id, nodeName(node)]));
  const from = (id: string) =>
    graph.edges.filter(({ target }) => target === id).map(({ source }) => names.get(source) ?? source);
  const element = table<DatasetGraphNode>({
    caption: "Datasets and jobs before and after this one",
    rows: graph.nodes,
    key: ({ id }) => id,
    opens: true,
    columns: [
      { name: "Where", kind: "narrow", cell: sideOf },
      {
        name: "Name",
        cell: (node) => [
          h("a", { href: href(routeOf(node)) }, nodeName(node)),
          node.remark !== "" && h("div", { class: "warning" }, node.remark),
        ],
      },
      { name: "Kind", cell: ({ kind }) => kind },
      {
        name: "Runs",
        cell: (node) => h("span", { class: node.failed_runs > 0 ? "is-failed" : null }, runsText(node)),
      },
      { name: "From", cell: ({ id }) => from(id).join(", ") },
    ],
  });
  element.classList.add("neighbours");
  const pointed = (event: Event) => {
    const row = event.target instanceof Element ? event.target.closest("tr") : null;
    point(row?.dataset.key ?? null, event.type === "focusin");
  };
  element.addEventListener("mouseover", pointed);
  element.addEventListener("focusin", pointed);
  element.addEventListener("mouseleave", () => point(null, false));
  return element;
}
