// Draws a picture with Cytoscape: pans, zooms, follows the pointer and the keys. Knows nothing of where a click leads.

import cytoscape, { type Core, type ElementDefinition, type EventObject, type StylesheetJson } from "cytoscape";
import { addElements, allowStyles } from "../cytoscape";
import { groupBy } from "../groups";
import { isArrow } from "../keys";
import { colour } from "../theme";
import { segments } from "./bends";
import { flowsOf, labelOf, sizeOf } from "./labels";
import type { DrawnBox, Picture } from "./model";
import { neighbour, topmost } from "./navigation";
import type { Placement } from "./placement";

export interface DrawingListener {
  /** A click, or Enter on the current box. */
  onOpen(box: DrawnBox): void;
  /** The pointer or the keys came to a box, or left it. `byKey`: say it to those who hear. */
  current(box: DrawnBox | null, byKey: boolean): void;
}

export interface Drawing {
  /** Adds the elements in slices. Resolves when all are added, or another picture is shown. */
  show(picture: Picture, placed: Placement): Promise<void>;
  /** Marks a box; with `isSought` it is brought into sight. */
  point(id: string | null, isRevealed: boolean): void;
  zoom(by: number): void;
  fit(): void;
  close(): void;
}

/** Between the drawing and its border. */
const MARGIN = 16;
/** What a box takes beyond its size. */
const BORDER = 1.5;
/** Text below this size on the screen is unreadable; the drawing then starts at its top instead of as a whole. */
const READABLE = 0.8;
const ZOOM = { minZoom: 0.05, maxZoom: 2.5 };

export function makeDrawing(container: HTMLElement, listener: DrawingListener): Drawing {
  allowStyles();
  const graph: Core = cytoscape({
    container,
    style: styles(),
    autoungrabify: true,
    boxSelectionEnabled: false,
    layout: { name: "preset" },
    textureOnViewport: true, // while it is moved: a picture of it
    userZoomingEnabled: false, // the wheel scrolls the page; with Ctrl it zooms, below
    ...ZOOM,
  });
  let currentPicture: Picture = { boxes: [], lines: [], open: [], closed: [], lineless: 0 };
  let places: Placement["boxes"] = {};
  let current: string | null = null;
  let showing = new AbortController();
  let litEdges = graph.collection().edges();

  const boxOf = (id: string | null) => currentPicture.boxes.find((box) => box.id === id) ?? null;
  const mark = (id: string | null) => {
    const node = graph.getElementById(id ?? "");
    const through = node.union(node.predecessors()).union(node.successors()).edges();
    graph.batch(() => {
      graph.nodes(".current").difference(node).removeClass("current");
      node.addClass("current");
      // Only what changes is styled anew: a step of the keys changes few of hundreds of lines.
      litEdges.difference(through).removeClass("lit");
      through.difference(litEdges).addClass("lit");
    });
    litEdges = through;
    current = id;
  };

  graph.on("tap", "node", ({ target }: EventObject) => {
    const box = boxOf(target.id());
    if (box !== null) listener.onOpen(box);
  });
  graph.on("mouseover", "node", ({ target }: EventObject) => {
    container.style.cursor = "pointer";
    mark(target.id());
    listener.current(boxOf(target.id()), false);
  });
  graph.on("mouseout", "node", () => {
    container.style.cursor = "";
    mark(null);
    listener.current(null, false);
  });

  const onWheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left, top } = container.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), { x: event.clientX - left, y: event.clientY - top });
  };
  const byKey = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (isArrow(event.key)) {
      const to =
        boxOf(current) === null ? topmost(places) : neighbour(places, currentPicture.lines, current ?? "", event.key);
      if (to !== null) go(to);
    } else if (event.key === "Enter" || event.key === " ") {
      const box = boxOf(current);
      if (box !== null) listener.onOpen(box);
    } else if (event.key === "Escape") {
      mark(null);
      listener.current(null, false);
    } else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  };
  const go = (id: string) => {
    mark(id);
    reveal(id);
    listener.current(boxOf(id), true);
  };
  const reveal = (id: string) => {
    const node = graph.getElementById(id);
    if (node.empty()) return;
    const box = node.renderedBoundingBox({});
    const isVisible = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= graph.width() && box.y2 <= graph.height();
    if (!isVisible) graph.center(node);
  };
  const zoom = (by: number, at = { x: graph.width() / 2, y: graph.height() / 2 }) =>
    graph.zoom({ level: graph.zoom() * by, renderedPosition: at });
  /** All of it; or, at the beginning, its top where all could not be read. */
  const fit = (least = 0) => {
    const { left, top, width, height } = extent(currentPicture, places);
    const all = Math.min((graph.width() - 2 * MARGIN) / width, (graph.height() - 2 * MARGIN) / height, 1);
    const level = Math.max(all, least, ZOOM.minZoom);
    const isWhole = height * level <= graph.height();
    graph.viewport({
      zoom: level,
      pan: {
        x: graph.width() / 2 - (left + width / 2) * level,
        y: isWhole ? graph.height() / 2 - (top + height / 2) * level : MARGIN - top * level,
      },
    });
  };
  const restyle = () => graph.style(styles());

  container.addEventListener("wheel", onWheel, { passive: false });
  container.addEventListener("keydown", byKey);
  document.addEventListener("theme", restyle);

  return {
    async show(picture, placed) {
      showing.abort();
      showing = new AbortController();
      const { signal } = showing;
      const isFirst = currentPicture.boxes.length === 0;
      [currentPicture, places] = [picture, placed.boxes];
      graph.elements().remove();
      litEdges = graph.collection().edges();
      if (isFirst) fit(READABLE);
      await addElements(graph, elements(picture, placed), signal);
      if (signal.aborted) return;
      if (boxOf(current) !== null) mark(current);
      else current = null;
    },
    point(id, isRevealed) {
      mark(id);
      if (id !== null && isRevealed) reveal(id);
    },
    zoom: (by) => {
      zoom(by);
    },
    fit: () => fit(),
    close() {
      showing.abort();
      document.removeEventListener("theme", restyle);
      container.removeEventListener("wheel", onWheel);
      container.removeEventListener("keydown", byKey);
      graph.destroy();
    },
  };
}

/** What of the plane the drawing takes; frames are around what they hold. */
function extent({ boxes }: Picture, places: Placement["boxes"]) {
  const { left, top, right, bottom } = sides(boxes, places);
  return {
    left: left - MARGIN,
    top: top - 2 * MARGIN,
    width: right - left + 2 * MARGIN,
    height: bottom - top + 3 * MARGIN,
  };
}

/** Place and size of a frame; its padding comes to that. */
function frameOf(boxes: readonly DrawnBox[], places: Placement["boxes"]) {
  const { left, top, right, bottom } = sides(boxes, places);
  return {
    at: { x: (left + right) / 2, y: (top + bottom) / 2 },
    width: right - left + 2 * BORDER,
    height: bottom - top + 2 * BORDER,
  };
}

function sides(boxes: readonly DrawnBox[], places: Placement["boxes"]) {
  const all = boxes.map((box) => ({ at: places[box.id] ?? { x: 0, y: 0 }, ...sizeOf(box) }));
  return {
    left: Math.min(...all.map(({ at, width }) => at.x - width / 2)),
    top: Math.min(...all.map(({ at, height }) => at.y - height / 2)),
    right: Math.max(...all.map(({ at, width }) => at.x + width / 2)),
    bottom: Math.max(...all.map(({ at, height }) => at.y + height / 2)),
  };
}

/**
 * Frames are boxes below others, as large as what they hold. Cytoscape has nodes within nodes, too, but then looks
 * through what holds an element and what it holds for each property that is set: ten times the work.
 */
function elements(picture: Picture, placed: Placement): ElementDefinition[] {
  const members = groupBy(
    picture.boxes.filter((box) => box.type === "operation"),
    (box) => box.group ?? "",
  );
  const boxes = picture.boxes.map((box): ElementDefinition => {
    const isFrame = box.type === "group" && box.isOpen;
    const { at, ...size } = isFrame
      ? frameOf(members.get(box.id) ?? [], placed.boxes)
      : { at: placed.boxes[box.id] ?? { x: 0, y: 0 }, ...sizeOf(box) };
    return {
      group: "nodes",
      data: { id: box.id, label: labelOf(box), ...size },
      position: at,
      classes: classesOf(box, isFrame),
    };
  });
  const lines = picture.lines.map((line): ElementDefinition => {
    const [source, target] = [placed.boxes[line.source], placed.boxes[line.target]];
    const bends = placed.bends[line.id] ?? [];
    const bent = source && target ? segments(source, target, bends) : { weights: [], distances: [] };
    return {
      group: "edges",
      data: { id: line.id, source: line.source, target: line.target, label: flowsOf(line), ...bent },
      classes: [bent.weights.length > 0 && "bent", line.isShuffle && "shuffle"].filter(Boolean).join(" "),
    };
  });
  return [...boxes, ...lines];
}

function classesOf(box: DrawnBox, isFrame: boolean): string {
  if (isFrame) return "frame";
  if (box.type === "group") return "closed";
  const { kind, exact, state } = box.operation;
  return [kind, state === "failed" ? "broken" : !exact && "inexact"].filter(Boolean).join(" ");
}

function styles(): StylesheetJson {
  const colourOf = (name: string) => colour(`--${name}`);
  return [
    {
      selector: "node",
      style: {
        shape: "round-rectangle",
        width: "data(width)",
        height: "data(height)",
        label: "data(label)",
        "font-family": "system-ui, sans-serif",
        "font-size": 12,
        "line-height": 1.2,
        "text-wrap": "wrap",
        "text-valign": "center",
        "text-halign": "center",
        "text-max-width": "1000px", // lines end where the label says
        color: colourOf("ink"),
        "background-color": colourOf("operator-fill"),
        "border-width": 1,
        "border-color": colourOf("line"),
        "overlay-opacity": 0,
      },
    },
    {
      selector: ".source",
      style: { "background-color": colourOf("source-fill"), "border-color": colourOf("source"), "border-width": 1.5 },
    },
    {
      selector: ".sink",
      style: { "background-color": colourOf("sink-fill"), "border-color": colourOf("sink"), "border-width": 1.5 },
    },
    {
      selector: ".broken",
      style: { "background-color": colourOf("failure-fill"), "border-color": colourOf("failure"), "border-width": 2 },
    },
    { selector: ".inexact", style: { "border-style": "dashed", "border-color": colourOf("caution") } },
    {
      selector: ".closed",
      style: { "background-color": colourOf("stage-fill"), "border-style": "double", "border-width": 4 },
    },
    {
      selector: ".frame",
      style: {
        "background-color": colourOf("stage-fill"),
        "border-color": colourOf("rule"),
        color: colourOf("soft"),
        padding: "14px",
        "z-compound-depth": "bottom", // below the lines, too
        "text-valign": "top",
        "text-halign": "center",
        "text-margin-y": 16,
        "text-background-opacity": 0,
      },
    },
    {
      selector: "edge",
      style: {
        width: 1.2,
        "curve-style": "straight",
        "line-color": colourOf("line"),
        "target-arrow-color": colourOf("line"),
        "target-arrow-shape": "triangle",
        "arrow-scale": 0.8,
        label: "data(label)",
        "font-family": "system-ui, sans-serif",
        "font-size": 10.5,
        color: colourOf("soft"),
        "text-background-color": colourOf("card"),
        "text-background-opacity": 0.9,
        "text-background-padding": "2px",
        "overlay-opacity": 0,
      },
    },
    {
      selector: ".bent",
      style: {
        "curve-style": "round-segments",
        "edge-distances": "node-position",
        "segment-weights": "data(weights)",
        "segment-distances": "data(distances)",
        "segment-radii": 12,
      },
    },
    { selector: ".shuffle", style: { width: 2, "line-style": "dashed" } },
    {
      selector: ".lit",
      style: { "line-color": colourOf("chosen"), "target-arrow-color": colourOf("chosen"), width: 2.2, "z-index": 9 },
    },
    {
      selector: "node.current",
      style: { "border-color": colourOf("chosen"), "border-width": 3, "border-style": "solid" },
    },
  ] as unknown as StylesheetJson; // its types know no arrays by data() and no radii
}
