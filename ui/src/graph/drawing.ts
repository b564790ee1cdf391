// Draws a picture with Cytoscape: pans, zooms, follows the pointer and the keys. Knows nothing of where a click leads.

import cytoscape, { type Core, type ElementDefinition, type EventObject, type StylesheetJson } from "cytoscape";
import { addElements, allowStyles } from "../cytoscape";
import { type Arrow, isArrow } from "../keys";
import { makeMinimap } from "../minimap";
import { type Format, saveDrawing } from "../svg";
import { colour } from "../theme";
import { type Identified, sides } from "./extent";
import type { Size } from "./labels";
import { leftmost, type LineEnds, neighbour } from "./navigation";
import type { Placement } from "./placement";

/** What is drawn: boxes, of which the listener hears, and lines between them. */
export interface Drawable<Box extends Identified> {
  boxes: readonly Box[];
  lines: readonly LineEnds[];
}

/** How it looks. */
export interface Look<Box extends Identified, Shown extends Drawable<Box>> {
  elements(picture: Shown, placed: Placement): ElementDefinition[];
  sizeOf(box: Box): Size;
  /** Its rules, after those of every drawing. */
  styles(): StyleRule[];
  /** The box at which the keys begin; without it, the leftmost. */
  centre?: string;
}

export interface StyleRule {
  selector: string;
  style: { [property: string]: string | number };
}

export interface DrawingListener<Box> {
  /** A click, or Enter on the current box. */
  onOpen(box: Box): void;
  /** The pointer or the keys came to a box, or left it. `byKey`: say it to those who hear. */
  current(box: Box | null, byKey: boolean): void;
}

export interface Drawing<Shown> {
  /** Adds the elements in slices. Resolves when all are added, or another picture is shown. */
  show(picture: Shown, placed: Placement): Promise<void>;
  /** Marks a box; with `isSought` it is brought into sight. */
  point(id: string | null, isRevealed: boolean): void;
  zoom(by: number): void;
  fit(): void;
  save(name: string, format: Format): Promise<void>;
  close(): void;
}

/** Between the drawing and its border. */
const MARGIN = 8;
/** What a frame takes around its boxes, and its name above them. */
const FRAME = 18;
const TITLE = 8;
/** Text below this size on the screen is unreadable: a step of the keys makes it larger. */
const READABLE = 0.7;
const ZOOM = { minZoom: 0.05, maxZoom: 2.5 };

export function makeDrawing<Box extends Identified, Shown extends Drawable<Box>>(
  container: HTMLElement,
  look: Look<Box, Shown>,
  listener: DrawingListener<Box>,
): Drawing<Shown> {
  allowStyles();
  const styles = () => [...commonStyles(), ...look.styles(), ...markStyles()] as unknown as StylesheetJson;
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
  let currentPicture: Shown | null = null;
  let places: Placement["boxes"] = {};
  let current: string | null = null;
  let showing = new AbortController();
  let litEdges = graph.collection().edges();
  let fitted: { level: number; pan: { x: number; y: number } } | null = null;
  const minimap = makeMinimap(container, graph);

  const boxOf = (id: string | null) => currentPicture?.boxes.find((box) => box.id === id) ?? null;
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
      const to = destination(event.key);
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
  const destination = (arrow: Arrow) =>
    boxOf(current) === null
      ? (look.centre ?? leftmost(places))
      : neighbour(places, currentPicture?.lines ?? [], current ?? "", arrow);
  const go = (id: string) => {
    mark(id);
    if (graph.zoom() < READABLE) graph.zoom({ level: READABLE, position: graph.getElementById(id).position() });
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
  /** All of it, from the sources to the sinks. */
  const fit = () => {
    if (currentPicture === null) return;
    const { left, top, width, height } = extent(currentPicture.boxes, places, look.sizeOf);
    const all = Math.min((graph.width() - 2 * MARGIN) / width, (graph.height() - 2 * MARGIN) / height, 1);
    const level = Math.max(all, ZOOM.minZoom);
    const pan = {
      x: graph.width() / 2 - (left + width / 2) * level,
      y: graph.height() / 2 - (top + height / 2) * level,
    };
    graph.viewport({ zoom: level, pan });
    fitted = { level, pan };
  };
  /** Whether the reader has left it as it was. */
  const isFitted = () =>
    fitted !== null &&
    fitted.level === graph.zoom() &&
    fitted.pan.x === graph.pan().x &&
    fitted.pan.y === graph.pan().y;
  const resizeObserver = new ResizeObserver(() => {
    const wasFitted = isFitted();
    graph.resize();
    if (wasFitted) fit();
  });
  const restyle = () => graph.style(styles());

  container.addEventListener("wheel", onWheel, { passive: false });
  container.addEventListener("keydown", byKey);
  document.addEventListener("theme", restyle);
  resizeObserver.observe(container);

  return {
    async show(picture, placed) {
      showing.abort();
      showing = new AbortController();
      const { signal } = showing;
      const isFit = currentPicture === null || isFitted();
      [currentPicture, places] = [picture, placed.boxes];
      graph.elements().remove();
      litEdges = graph.collection().edges();
      graph.resize();
      if (isFit) fit();
      await addElements(graph, look.elements(picture, placed), signal);
      if (signal.aborted) return;
      minimap.redraw();
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
    fit,
    save: (name, format) => saveDrawing(graph, name, format),
    close() {
      showing.abort();
      resizeObserver.disconnect();
      minimap.close();
      document.removeEventListener("theme", restyle);
      container.removeEventListener("wheel", onWheel);
      container.removeEventListener("keydown", byKey);
      graph.destroy();
    },
  };
}

/** What of the plane the drawing takes; frames are around what they hold. */
function extent<Box extends Identified>(boxes: readonly Box[], places: Placement["boxes"], sizeOf: (box: Box) => Size) {
  const { left, top, right, bottom } = sides(boxes, places, sizeOf);
  return {
    left: left - FRAME,
    top: top - FRAME - TITLE,
    width: right - left + 2 * FRAME,
    height: bottom - top + 2 * FRAME + TITLE,
  };
}

const colourOf = (name: string) => colour(`--${name}`);

function commonStyles(): object[] {
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
  ]; // Cytoscape's types know no arrays by data() and no radii
}

function markStyles(): StyleRule[] {
  return [
    {
      selector: ".lit",
      style: { "line-color": colourOf("chosen"), "target-arrow-color": colourOf("chosen"), width: 2.2, "z-index": 9 },
    },
    {
      selector: "node.current",
      style: { "border-color": colourOf("chosen"), "border-width": 3, "border-style": "solid" },
    },
  ];
}
