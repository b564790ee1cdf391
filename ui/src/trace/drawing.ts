// The drawing of a way: Cytoscape puts a picture's elements where its placement says. Pointing, clicking and keys are
// told to the view; everything drawn here also stands in the list beside it.

import cytoscape, { type Core, type EdgeSingular, type ElementDefinition, type NodeSingular } from "cytoscape";
import { h, replace } from "../dom";
import { allowStyles, addElements } from "../cytoscape";
import { isArrow } from "../keys";
import { layoutTrace } from "../layout";
import { frame, inSlices } from "../slices";
import { prefersReducedMotion } from "../theme";
import { number } from "../format";
import { neighbour } from "./navigation";
import { look } from "./style";
import type { Side, Way } from "./model";
import { foldedName, furtherName, headName, type Link, moreName, type Picture } from "./picture";
import { type Placement, requestOf } from "./placement";
import { named } from "./sentences";
import { around, type Bounds, boundsOf, into, type Sight, whole } from "./viewport";
import { shortened } from "./texts";
import type { Ways } from "./adjacency";

const STEP = 1.3;
/** Elements that are marked at a time, so that nothing waits long meanwhile. */
const AT_A_TIME = 80;
/** So many elements could not be painted in one frame. */
const MANY = 150;
/** Width of a heading's character, about. */
const CHARACTER = 6.4;

/** What a click or Enter on something drawn asks for. */
export type Chosen =
  | { kind: "record"; hash: string }
  | { kind: "more"; node: string }
  | { kind: "further"; side: Side }
  | { kind: "folded"; side: Side };

type Mark = "lit" | "dim";

export interface Heard {
  chosen(what: Chosen): void;
  /** A record is pointed at, or none any more. */
  pointed(hash: string | null): void;
  /** The keys came to a record, or to something else that is called so. */
  came(name: string, label: string): void;
  /** Escape. */
  left(): void;
}

export interface Drawing {
  /** What was shown stays until it is known where everything stands. Rejects where that cannot be found. */
  show(way: Way, ways: Ways, picture: Picture): Promise<void>;
  /** Lights up these records and what joins them; null: nothing special. */
  light(hashes: ReadonlySet<string> | null, current: string | null): void;
  close(): void;
}

/** Fills the stage, which stands in the page already: Cytoscape measures it. */
export function makeDrawing(stage: HTMLElement, heard: Heard): Drawing {
  allowStyles();
  const canvas = h("div", { class: "way-canvas" });
  const holder = h("div", {
    class: "way-drawing",
    tabindex: 0,
    role: "application",
    "aria-label":
      "Drawing of the way. Arrow keys go from record to record, Enter goes to the way of one, Escape shows all. The records stand in the list below, too.",
  });
  const button = (label: string, title: string, does: () => void) =>
    h("button", { type: "button", title, "aria-label": title, click: does }, label);
  replace(holder, canvas);
  const place = h(
    "div",
    { class: "way-frame" },
    holder,
    h(
      "div",
      { class: "way-zoom", role: "group", "aria-label": "Zoom" },
      button("+", "Larger", () => zoom(STEP)),
      button("−", "Smaller", () => zoom(1 / STEP)),
      button("All", "Show all", () => all()),
    ),
  );
  replace(stage, place);
  const graph: Core = cytoscape({
    container: canvas,
    style: look(),
    minZoom: 0.05,
    maxZoom: 2.5,
    userZoomingEnabled: false, // the wheel scrolls the page
    boxSelectionEnabled: false,
    autoungrabify: true,
    autounselectify: true,
  });
  let shown: { ways: Ways; placement: Placement; bounds: Bounds; centre: string | null } | null = null;
  let showing = new AbortController();
  const marks = new Map<string, Mark>();
  let marking = new AbortController();
  const mark = (element: NodeSingular | EdgeSingular, wanted: Mark | null): void => {
    const had = marks.get(element.id()) ?? null;
    if (had !== null) element.removeClass(had);
    if (wanted === null) {
      marks.delete(element.id());
    } else {
      element.addClass(wanted);
      marks.set(element.id(), wanted);
    }
  };
  let current: string | null = null;

  const size = () => ({ width: graph.width(), height: graph.height() });
  const see = ({ zoom, pan }: Sight, isMoved = false): void => {
    if (zoom === graph.zoom() && pan.x === graph.pan().x && pan.y === graph.pan().y) return;
    graph.stop();
    if (isMoved && !prefersReducedMotion()) graph.animate({ zoom, pan: { ...pan } }, { duration: 150 });
    else graph.viewport({ zoom, pan: { ...pan } });
  };
  const all = (): void => {
    if (shown !== null) see(whole(shown.bounds, size()));
  };
  const zoom = (factor: number): void => {
    const { width, height } = size();
    graph.zoom({ level: graph.zoom() * factor, renderedPosition: { x: width / 2, y: height / 2 } });
  };
  const settle = (): void => {
    if (shown === null || graph.width() === 0) return;
    see(around(shown.bounds, size(), shown.placement.spots.get(current ?? shown.centre ?? "")));
  };

  const what = (name: string): Chosen | null => chosenOf(graph.getElementById(name).data());
  const choose = (name: string): void => {
    const chosen = what(name);
    if (chosen !== null) heard.chosen(chosen);
  };
  graph.on("tap", "node", ({ target }) => choose(target.id()));
  graph.on("mouseover", "node.record", ({ target }) => {
    canvas.classList.add("pointing");
    heard.pointed(target.id());
  });
  graph.on("mouseover", "node.stub", () => canvas.classList.add("pointing"));
  graph.on("mouseout", "node.record, node.stub", () => {
    canvas.classList.remove("pointing");
    heard.pointed(null);
  });

  const go = (name: string): void => {
    current = name;
    const element = graph.getElementById(name);
    graph.nodes(".current").removeClass("current");
    element.addClass("current");
    const spot = shown?.placement.spots.get(name);
    if (shown !== null && spot !== undefined)
      see(into({ zoom: graph.zoom(), pan: { ...graph.pan() } }, shown.bounds, size(), spot), true);
    heard.pointed(element.hasClass("record") ? name : null);
    heard.came(name, String(element.data("label")).replace("\n", ", "));
  };
  holder.addEventListener("keydown", (event) => {
    if (shown === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const from = current ?? shown.centre ?? shown.placement.rows[0]?.[0] ?? null;
    if (isArrow(event.key) && from !== null) {
      event.preventDefault();
      const next = neighbour(shown.placement, shown.ways, from, event.key);
      if (next !== null) go(next);
      else if (current === null) go(from);
    } else if ((event.key === "Enter" || event.key === " ") && current !== null) {
      event.preventDefault();
      choose(current);
    } else if (event.key === "Escape") {
      event.preventDefault();
      current = null;
      graph.nodes(".current").removeClass("current");
      all();
      heard.left();
    } else if (event.key === "+" || event.key === "-") {
      event.preventDefault();
      zoom(event.key === "+" ? STEP : 1 / STEP);
    } else if (event.key === "0") {
      event.preventDefault();
      all();
    }
  });

  const restyle = (): void => {
    graph.style(look());
  };
  document.addEventListener("theme", restyle);
  const sized = new ResizeObserver(() => {
    graph.resize();
    settle();
  });
  sized.observe(holder);

  return {
    async show(way, ways, picture) {
      showing.abort();
      showing = new AbortController();
      const { signal } = showing;
      delete place.dataset.elements;
      place.setAttribute("aria-busy", "true");
      const placement = await layoutTrace(requestOf(picture), signal).catch((error: unknown) => {
        if (signal.aborted) return null;
        throw error;
      });
      if (placement === null || signal.aborted) return;
      const [first] = way.centre.records;
      const centre = first === undefined ? null : `${way.centre.id}#${first.record_id}`;
      shown = { ways, placement, bounds: boundsOf(placement), centre };
      current = null;
      marking.abort();
      marks.clear();
      graph.elements().remove();
      const elements = elementsOf(way, picture, placement);
      // Many are drawn as far away as Escape goes: painted for that size here, some in a frame, not all in one later.
      if (elements.length > MANY) all();
      else settle();
      await addElements(graph, elements, signal);
      if (signal.aborted) return; // another picture, or none any more
      settle();
      place.dataset.elements = String(elements.length);
      place.removeAttribute("aria-busy");
    },
    light(hashes, lit) {
      marking.abort();
      marking = new AbortController();
      const of = (name: string): Mark | null => (hashes === null ? null : hashes.has(name) ? "lit" : "dim");
      const wanted: [NodeSingular | EdgeSingular, Mark | null][] = [];
      graph.nodes(".record").forEach((node) => {
        wanted.push([node, of(node.id())]);
      });
      graph.edges().forEach((edge) => {
        wanted.push([edge, of(edge.data("source")) === "lit" ? of(edge.data("target")) : of(edge.data("source"))]);
      });
      // Only what changes is styled anew: of hundreds of elements a step of the keys changes few. The way at first.
      const changed = wanted.filter(([element, mark]) => (marks.get(element.id()) ?? null) !== mark);
      changed.sort(([, one], [, other]) => Number(other === "lit") - Number(one === "lit"));
      graph.batch(() => {
        graph.elements(".current").removeClass("current");
        if (lit !== null) graph.getElementById(lit).addClass("current");
        if (current !== null) graph.getElementById(current).addClass("current");
      });
      void inSlices(
        changed,
        AT_A_TIME,
        (slice) => {
          graph.batch(() => {
            for (const [element, wanted] of slice) mark(element, wanted);
          });
        },
        { signal: marking.signal, between: frame },
      );
    },
    close() {
      document.removeEventListener("theme", restyle);
      sized.disconnect();
      showing.abort();
      marking.abort();
      graph.destroy();
    },
  };
}

function chosenOf(data: { kind?: string; of?: string }): Chosen | null {
  const of = data.of ?? "";
  switch (data.kind) {
    case "record":
      return { kind: "record", hash: of };
    case "more":
      return { kind: "more", node: of };
    case "further":
      return { kind: "further", side: of as Side };
    case "folded":
      return { kind: "folded", side: of as Side };
    default:
      return null;
  }
}

function elementsOf(way: Way, picture: Picture, placement: Placement): ElementDefinition[] {
  const elements: ElementDefinition[] = [];
  const add = (id: string, classes: string, data: { label: string; kind: string; of: string }): void => {
    const spot = placement.spots.get(id);
    if (spot === undefined) return;
    const { x, y, width, height } = spot;
    elements.push({ data: { id, width, height, ...data }, position: { x, y }, classes });
  };
  for (const { node, boxes, more } of picture.groups) {
    const where = node.application === way.centre.application ? "" : ` · in ${node.application}`;
    const total = boxes.length < node.total ? `${number(boxes.length)} of ${number(node.total)}` : number(node.total);
    const bound = node.exact ? "" : " · not exact";
    const classes = ["group", node.kind, where === "" ? "" : "foreign", node.exact ? "" : "inexact"];
    const label = shortened(`${named(node)} · ${total}${bound}${where}`, boxes.length > 1 || more > 0 ? 60 : 32);
    add(node.id, classes.join(" "), { label: "", kind: "group", of: node.id });
    add(headName(node.id), "head", { label, kind: "group", of: node.id });
    const head = elements.at(-1);
    if (head !== undefined) head.data.width = Math.min(head.data.width, label.length * CHARACTER + 8);
    for (const box of boxes) {
      const label = `${box.hasWarning ? "⚠ " : ""}${box.text}${box.place === "" ? "" : `\n${box.place}`}`;
      add(box.hash, `record ${node.kind}${box.isCentre ? " centre" : ""}`, { label, kind: "record", of: box.hash });
    }
    if (more > 0) add(moreName(node.id), "stub", { label: `+${number(more)} more`, kind: "more", of: node.id });
  }
  for (const [side, nodes] of picture.folded) {
    add(foldedName(side), "stub", {
      label: `${number(nodes.length)} more operations\nin the list below`,
      kind: "folded",
      of: side,
    });
  }
  for (const side of picture.further) {
    const label = side === "backward" ? "↑ one operation further back" : "↓ one operation further on";
    add(furtherName(side), "stub", { label, kind: "further", of: side });
  }
  const known = new Set(elements.map((element) => element.data.id));
  const join = (link: Link, classes: string): void => {
    if (!known.has(link.from) || !known.has(link.to)) return;
    const id = `${classes} ${link.from} > ${link.to}`;
    const label = link.flows > 1 ? `${number(link.flows)} flows` : "";
    elements.push({ data: { id, source: link.from, target: link.to, label }, classes });
  };
  for (const link of picture.links) join(link, "flow");
  for (const bundle of picture.bundles) join(bundle, "bundle");
  return elements;
}
