// A small picture of a whole drawing, in a corner of it, with a frame around what is in sight. It is there while there is
// more than that; a click or a drag goes there. Keys do the same in the drawing, so screen readers do without it.

import type { Core } from "cytoscape";
import { h } from "./dom";
import { colour } from "./theme";

const LARGEST = { width: 168, height: 104 };
/** Part of the drawing that may be out of sight without a need for a map. */
const TOLERANCE = 0.02;

export interface Minimap {
  /** After the elements have changed. */
  redraw(): void;
  close(): void;
}

export function makeMinimap(container: HTMLElement, graph: Core): Minimap {
  const canvas = h("canvas");
  const frame = h("div", { class: "minimap-frame" });
  const element = h("div", { class: "minimap", "aria-hidden": "true", hidden: true }, canvas, frame);
  container.append(element);
  let extent = { x1: 0, y1: 0, w: 0, h: 0 };
  let scale = 1;
  let waiting = 0;

  const redraw = () => {
    extent = graph.nodes().boundingBox({ includeLabels: false, includeOverlays: false });
    if (extent.w === 0 || extent.h === 0) return;
    scale = Math.min(LARGEST.width / extent.w, LARGEST.height / extent.h);
    const sharp = devicePixelRatio || 1;
    canvas.width = Math.ceil(extent.w * scale * sharp);
    canvas.height = Math.ceil(extent.h * scale * sharp);
    canvas.style.width = `${extent.w * scale}px`;
    canvas.style.height = `${extent.h * scale}px`;
    const pen = canvas.getContext("2d");
    if (pen === null) return;
    const colours = { frame: colour("--rule"), box: colour("--line"), failed: colour("--failure") };
    graph.nodes().forEach((node) => {
      const { x, y } = node.position();
      const [width, height] = [node.width() * scale * sharp, node.height() * scale * sharp];
      pen.fillStyle = node.hasClass("broken")
        ? colours.failed
        : node.hasClass("frame") || node.hasClass("group")
          ? colours.frame
          : colours.box;
      pen.fillRect(
        (x - extent.x1) * scale * sharp - width / 2,
        (y - extent.y1) * scale * sharp - height / 2,
        width,
        height,
      );
    });
    follow();
  };
  const follow = () => {
    waiting = 0;
    const sight = graph.extent();
    const [left, top] = [Math.max(sight.x1, extent.x1), Math.max(sight.y1, extent.y1)];
    const [right, bottom] = [Math.min(sight.x2, extent.x1 + extent.w), Math.min(sight.y2, extent.y1 + extent.h)];
    const seen = (Math.max(0, right - left) * Math.max(0, bottom - top)) / (extent.w * extent.h || 1);
    element.hidden = seen > 1 - TOLERANCE || graph.width() < 3 * LARGEST.width;
    if (element.hidden) return;
    frame.style.transform = `translate(${(left - extent.x1) * scale}px, ${(top - extent.y1) * scale}px)`;
    frame.style.width = `${Math.max(4, (right - left) * scale)}px`;
    frame.style.height = `${Math.max(4, (bottom - top) * scale)}px`;
  };
  const soon = () => {
    if (waiting === 0) waiting = requestAnimationFrame(follow);
  };
  const goTo = (event: PointerEvent) => {
    if (event.buttons === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = [extent.x1 + (event.clientX - left) / scale, extent.y1 + (event.clientY - top) / scale];
    const zoom = graph.zoom();
    graph.pan({ x: graph.width() / 2 - x * zoom, y: graph.height() / 2 - y * zoom });
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    goTo(event);
  });
  element.addEventListener("pointermove", goTo);
  // Cytoscape listens to these at the container.
  for (const name of ["mousedown", "touchstart"]) element.addEventListener(name, (event) => event.stopPropagation());
  graph.on("viewport resize", soon);
  document.addEventListener("theme", redraw);
  return {
    redraw,
    close() {
      cancelAnimationFrame(waiting);
      document.removeEventListener("theme", redraw);
      element.remove();
    },
  };
}
