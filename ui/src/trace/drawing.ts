// Draws a record's lineage: Cytoscape puts a picture's elements where its placement says. The view hears of pointing,
// clicks and keys; the list below the drawing has the same records.

import cytoscape, { type Core, type EdgeSingular, type ElementDefinition, type NodeSingular } from "cytoscape";
import { addElements, allowStyles } from "../cytoscape";
import { h, replace } from "../dom";
import { number } from "../format";
import { isArrow } from "../keys";
import { layoutTrace } from "../layout";
import { makeMinimap } from "../minimap";
import { frame, inSlices } from "../slices";
import { saveDrawing } from "../svg";
import { prefersReducedMotion } from "../theme";
import { drawingTools } from "../tools";
import type { Adjacency } from "./adjacency";
import type { RecordLineage, Side } from "./model";
import { neighbour } from "./navigation";
import { foldedName, furtherName, headName, type Link, moreName, type Picture } from "./picture";
import { type Placement, requestOf } from "./placement";
import { applicationLabel, operationLabel } from "./sentences";
import { stylesheet } from "./style";
import { shortened, textOf } from "./texts";
import { type Bounds, boundsOf, fitAll, reveal, type Viewport } from "./viewport";

/** Heights of the drawing: as high as what it shows, with room for the rest of the page. */
const LEAST_HEIGHT = 240;
const AROUND = 230;
const MARGIN = 32;
/** Elements that are marked in one task, so that the page stays responsive. */
const MARK_SLICE = 80;
/** Approximate width of a character of a heading. */
const CHARACTER = 6.4;

/** What a click or Enter on an element asks for. */
export type Choice =
  | { kind: "record"; hash: string }
  | { kind: "more"; node: string }
  | { kind: "further"; side: Side }
  | { kind: "folded"; key: string };

type Mark = "lit" | "dim";

export interface DrawingListener {
  onChoose(choice: Choice): void;
  /** The pointer is on a record, or on none any more. */
  onPoint(hash: string | null): void;
  /** The arrow keys moved to an element. */
  onFocus(name: string, label: string): void;
  /** Escape. */
  onLeave(): void;
}

export interface Drawing {
  /** The previous picture stays until the placement is there. Rejects if the layout fails. */
  show(lineage: RecordLineage, adjacency: Adjacency, picture: Picture): Promise<void>;
  /** Highlights these records and the links between them; null: none. */
  light(hashes: ReadonlySet<string> | null, current: string | null): void;
  close(): void;
}

/** Fills the stage, which must be in the page already: Cytoscape measures it. */
export function makeDrawing(stage: HTMLElement, listener: DrawingListener): Drawing {
  allowStyles();
  const canvas = h("div", { class: "trace-canvas" });
  const holder = h("div", {
    class: "trace-drawing",
    tabindex: 0,
    role: "application",
    "aria-label":
      "Drawing of the trace. Arrow keys move between records, Enter opens the trace of a record, Escape shows all. The tables below list the same records.",
  });
  replace(holder, canvas);
  const frameElement = h(
    "div",
    { class: "trace-frame" },
    holder,
    h(
      "div",
      { class: "trace-zoom" },
      drawingTools(
        () => ({ zoom, fit: () => showAll(), save: (name, format) => saveDrawing(graph, name, format) }),
        () => name,
      ),
    ),
  );
  replace(stage, frameElement);
  const graph: Core = cytoscape({
    container: canvas,
    style: stylesheet(),
    minZoom: 0.05,
    maxZoom: 2.5,
    userZoomingEnabled: false, // the wheel scrolls the page
    boxSelectionEnabled: false,
    autoungrabify: true,
    autounselectify: true,
  });
  let drawn: { adjacency: Adjacency; placement: Placement; bounds: Bounds; centre: string | null } | null = null;
  let showing = new AbortController();
  const marks = new Map<string, Mark>();
  let highlighting = new AbortController();
  const mark = (element: NodeSingular | EdgeSingular, newMark: Mark | null): void => {
    const oldMark = marks.get(element.id()) ?? null;
    if (oldMark !== null) element.removeClass(oldMark);
    if (newMark === null) {
      marks.delete(element.id());
    } else {
      element.addClass(newMark);
      marks.set(element.id(), newMark);
    }
  };
  let current: string | null = null;
  let name = "trace";
  const minimap = makeMinimap(holder, graph);

  const size = () => ({ width: graph.width(), height: graph.height() });
  const setViewport = ({ zoom, pan }: Viewport, isMoved = false): void => {
    if (zoom === graph.zoom() && pan.x === graph.pan().x && pan.y === graph.pan().y) return;
    graph.stop();
    if (isMoved && !prefersReducedMotion()) graph.animate({ zoom, pan: { ...pan } }, { duration: 150 });
    else graph.viewport({ zoom, pan: { ...pan } });
  };
  const showAll = (): void => {
    if (drawn !== null) setViewport(fitAll(drawn.bounds, size()));
  };
  const zoom = (factor: number): void => {
    const { width, height } = size();
    graph.zoom({ level: graph.zoom() * factor, renderedPosition: { x: width / 2, y: height / 2 } });
  };
  const resetViewport = (): void => {
    if (drawn === null || graph.width() === 0) return;
    const spot = drawn.placement.spots.get(current ?? "");
    if (spot === undefined) showAll();
    else setViewport(reveal({ zoom: graph.zoom(), pan: { ...graph.pan() } }, drawn.bounds, size(), spot));
  };
  /** As high as all of it is in this width. */
  const setHeight = (bounds: Bounds): void => {
    graph.resize();
    const scale = Math.min(1, (graph.width() - MARGIN) / (bounds.right - bounds.left));
    const height = (bounds.bottom - bounds.top) * scale + MARGIN;
    holder.style.height = `${Math.round(Math.max(LEAST_HEIGHT, Math.min(innerHeight - AROUND, height)))}px`;
    graph.resize();
  };

  const choiceAt = (name: string): Choice | null => choiceOf(graph.getElementById(name).data());
  const choose = (name: string): void => {
    const chosen = choiceAt(name);
    if (chosen !== null) listener.onChoose(chosen);
  };
  graph.on("tap", "node", ({ target }) => choose(target.id()));
  graph.on("mouseover", "node.record", ({ target }) => {
    canvas.classList.add("pointing");
    listener.onPoint(target.id());
  });
  graph.on("mouseover", "node.stub", () => canvas.classList.add("pointing"));
  graph.on("mouseout", "node.record, node.stub", () => {
    canvas.classList.remove("pointing");
    listener.onPoint(null);
  });

  const go = (name: string): void => {
    current = name;
    const element = graph.getElementById(name);
    graph.nodes(".current").removeClass("current");
    element.addClass("current");
    const spot = drawn?.placement.spots.get(name);
    if (drawn !== null && spot !== undefined)
      setViewport(reveal({ zoom: graph.zoom(), pan: { ...graph.pan() } }, drawn.bounds, size(), spot), true);
    listener.onPoint(element.hasClass("record") ? name : null);
    listener.onFocus(name, String(element.data("label")).replace("\n", ", "));
  };
  holder.addEventListener("keydown", (event) => {
    if (drawn === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const from = current ?? drawn.centre ?? drawn.placement.layers[0]?.[0] ?? null;
    if (isArrow(event.key) && from !== null) {
      event.preventDefault();
      const next = neighbour(drawn.placement, drawn.adjacency, from, event.key);
      if (next !== null) go(next);
      else if (current === null) go(from);
    } else if ((event.key === "Enter" || event.key === " ") && current !== null) {
      event.preventDefault();
      choose(current);
    } else if (event.key === "Escape") {
      event.preventDefault();
      current = null;
      graph.nodes(".current").removeClass("current");
      showAll();
      listener.onLeave();
    } else if (event.key === "+" || event.key === "-") {
      event.preventDefault();
      zoom(event.key === "+" ? 1.25 : 0.8);
    } else if (event.key === "0") {
      event.preventDefault();
      showAll();
    }
  });

  const restyle = (): void => {
    graph.style(stylesheet());
  };
  document.addEventListener("theme", restyle);
  const resizeObserver = new ResizeObserver(() => {
    graph.resize();
    resetViewport();
  });
  resizeObserver.observe(holder);

  return {
    async show(lineage, adjacency, picture) {
      showing.abort();
      showing = new AbortController();
      const { signal } = showing;
      delete frameElement.dataset.elements;
      frameElement.setAttribute("aria-busy", "true");
      const placement = await layoutTrace(requestOf(picture), signal).catch((error: unknown) => {
        if (signal.aborted) return null;
        throw error;
      });
      if (placement === null || signal.aborted) return;
      const [first] = lineage.centre.records;
      const centre = first === undefined ? null : `${lineage.centre.id}#${first.record_id}`;
      drawn = { adjacency, placement, bounds: boundsOf(placement), centre };
      name = `trace-${textOf(first ?? { record_id: lineage.centre.name, partition: 0, offset: 0 }).slice(0, 40)}`;
      setHeight(drawn.bounds);
      current = null;
      highlighting.abort();
      marks.clear();
      graph.elements().remove();
      const elements = elementsOf(lineage, picture, placement);
      showAll();
      await addElements(graph, elements, signal);
      if (signal.aborted) return; // another picture, or none any more
      minimap.redraw();
      frameElement.dataset.elements = String(elements.length);
      frameElement.removeAttribute("aria-busy");
    },
    light(hashes, lit) {
      highlighting.abort();
      highlighting = new AbortController();
      const markOf = (name: string): Mark | null => (hashes === null ? null : hashes.has(name) ? "lit" : "dim");
      const marked: [NodeSingular | EdgeSingular, Mark | null][] = [];
      graph.nodes(".record").forEach((node) => {
        marked.push([node, markOf(node.id())]);
      });
      graph.edges().forEach((edge) => {
        marked.push([
          edge,
          markOf(edge.data("source")) === "lit" ? markOf(edge.data("target")) : markOf(edge.data("source")),
        ]);
      });
      // Only what changes is styled anew: of hundreds of elements a step of the keys changes few. What is lit comes first.
      const changed = marked.filter(([element, mark]) => (marks.get(element.id()) ?? null) !== mark);
      changed.sort(([, one], [, other]) => Number(other === "lit") - Number(one === "lit"));
      graph.batch(() => {
        graph.elements(".current").removeClass("current");
        if (lit !== null) graph.getElementById(lit).addClass("current");
        if (current !== null) graph.getElementById(current).addClass("current");
      });
      void inSlices(
        changed,
        MARK_SLICE,
        (slice) => {
          graph.batch(() => {
            for (const [element, newMark] of slice) mark(element, newMark);
          });
        },
        { signal: highlighting.signal, between: frame },
      );
    },
    close() {
      document.removeEventListener("theme", restyle);
      resizeObserver.disconnect();
      minimap.close();
      showing.abort();
      highlighting.abort();
      graph.destroy();
    },
  };
}

function choiceOf(data: { kind?: string; markOf?: string }): Choice | null {
  const markOf = data.markOf ?? "";
  switch (data.kind) {
    case "record":
      return { kind: "record", hash: markOf };
    case "more":
      return { kind: "more", node: markOf };
    case "further":
      return { kind: "further", side: markOf as Side };
    case "folded":
      return { kind: "folded", key: markOf };
    default:
      return null;
  }
}

function elementsOf(lineage: RecordLineage, picture: Picture, placement: Placement): ElementDefinition[] {
  const elements: ElementDefinition[] = [];
  const add = (id: string, classes: string, data: { label: string; kind: string; markOf: string }): void => {
    const spot = placement.spots.get(id);
    if (spot === undefined) return;
    const { x, y, width, height } = spot;
    elements.push({ data: { id, width, height, ...data }, position: { x, y }, classes });
  };
  for (const { node, boxes, more } of picture.groups) {
    const isForeign = node.application !== lineage.centre.application;
    const total = boxes.length < node.total ? `${number(boxes.length)} of ${number(node.total)}` : number(node.total);
    const classes = ["group", node.kind, isForeign ? "foreign" : "", node.exact ? "" : "inexact"];
    add(node.id, classes.join(" "), { label: "", kind: "group", markOf: node.id });
    const width = placement.spots.get(node.id)?.width ?? 0;
    const label = [
      `${operationLabel(node)}${isForeign ? ` in ${applicationLabel(node)}` : ""}`,
      `${total}${node.exact ? "" : ", not exact"}`,
    ].map((line) => shortened(line, Math.floor(width / CHARACTER)));
    add(headName(node.id), "head", { label: label.join("\n"), kind: "group", markOf: node.id });
    for (const box of boxes) {
      const label = `${box.hasWarning ? "⚠ " : ""}${box.text}${box.place === "" ? "" : `\n${box.place}`}`;
      const marks = `${box.isCentre ? " centre" : ""}${box.isOutlier ? " outlier" : ""}`;
      add(box.hash, `record ${node.kind}${marks}`, { label, kind: "record", markOf: box.hash });
    }
    if (more > 0) add(moreName(node.id), "stub", { label: `+${number(more)} more`, kind: "more", markOf: node.id });
  }
  for (const [key, { nodes, canOpen }] of picture.folded) {
    const label = canOpen
      ? `${number(nodes.length)} operations\nclick to show each`
      : `${number(nodes.length)} more operations\nin the tables below`;
    add(foldedName(key), "stub", { label, kind: "folded", markOf: key });
  }
  for (const side of picture.further) {
    const label = side === "backward" ? "← one operation back" : "one operation forward →";
    add(furtherName(side), "stub", { label, kind: "further", markOf: side });
  }
  const ids = new Set(elements.map((element) => element.data.id));
  const addLink = (link: Link, classes: string): void => {
    if (!ids.has(link.from) || !ids.has(link.to)) return;
    const id = `${classes} ${link.from} > ${link.to}`;
    const label = link.flows > 1 ? `${number(link.flows)} flows` : "";
    elements.push({ data: { id, source: link.from, target: link.to, label }, classes });
  };
  for (const link of picture.links) addLink(link, "flow");
  for (const bundle of picture.bundles) addLink(bundle, "bundle");
  return elements;
}
