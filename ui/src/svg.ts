// A drawing as a file: SVG from the elements of Cytoscape and their computed style, PNG by Cytoscape itself.

import type { Core, EdgeSingular, NodeSingular, Position } from "cytoscape";
import { save } from "./client";
import { s } from "./dom";
import { colour } from "./theme";

const MARGIN = 16;
/** Pixels of a PNG for each unit of the drawing. */
const SHARP = 2;
/** Chromium draws no larger pictures. */
const MAX_PIXELS = 8_000;

export type Format = "svg" | "png";

/** Saves all of the drawing, with the colours that the reader sees. */
export async function saveDrawing(graph: Core, name: string, format: Format): Promise<void> {
  const file = `${name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^-+|-+$/g, "") || "lineage"}.${format}`;
  if (format === "svg") {
    save(new Blob([svgOf(graph)], { type: "image/svg+xml" }), file);
    return;
  }
  const { w, h } = graph.elements().boundingBox();
  const scale = Math.min(SHARP, MAX_PIXELS / Math.max(w, h, 1));
  save(await graph.png({ output: "blob-promise", full: true, scale, bg: colour("--card") }), file);
}

export function svgOf(graph: Core): string {
  const { x1, y1, w, h } = graph.elements().boundingBox();
  const [left, top, width, height] = [x1 - MARGIN, y1 - MARGIN, w + 2 * MARGIN, h + 2 * MARGIN];
  const byDepth = (one: NodeSingular, other: NodeSingular) => depthOf(one) - depthOf(other);
  const nodes = graph.nodes().toArray().sort(byDepth);
  const below = nodes.filter((node) => depthOf(node) < 0);
  const above = nodes.filter((node) => depthOf(node) >= 0);
  const root = s(
    "svg",
    {
      viewBox: [left, top, width, height].map(rounded).join(" "),
      width: rounded(width),
      height: rounded(height),
    },
    s("rect", {
      x: rounded(left),
      y: rounded(top),
      width: rounded(width),
      height: rounded(height),
      fill: colour("--card"),
    }),
    below.map(nodeOf),
    graph.edges().toArray().map(edgeOf),
    above.map(nodeOf),
  );
  return new XMLSerializer().serializeToString(root);
}

/** Frames are below the lines; headings above all. */
function depthOf(node: NodeSingular): number {
  if (node.hasClass("frame") || node.hasClass("group")) return -1;
  return node.hasClass("head") ? 1 : 0;
}

const rounded = (value: number): number => Math.round(value * 10) / 10;
const dashes = (style: string): string | null => (style === "dashed" ? "5 4" : null);

function nodeOf(node: NodeSingular): SVGElement {
  const { x, y } = node.position();
  const padding = Number.parseFloat(node.style("padding") ?? "0") || 0;
  const [width, height] = [node.width() + 2 * padding, node.height() + 2 * padding];
  const border = Number.parseFloat(node.style("border-width"));
  const lines = String(node.style("label") ?? "").split("\n");
  const size = Number.parseFloat(node.style("font-size"));
  const isAtTop = node.style("text-valign") === "top";
  const middle = isAtTop ? y - height / 2 + (Number.parseFloat(node.style("text-margin-y")) || 0) - size / 2 : y;
  return s(
    "g",
    { opacity: node.style("opacity") },
    s("rect", {
      x: rounded(x - width / 2),
      y: rounded(y - height / 2),
      width: rounded(width),
      height: rounded(height),
      rx: 6,
      fill: node.style("background-color"),
      "fill-opacity": node.style("background-opacity"),
      stroke: border > 0 ? node.style("border-color") : "none",
      "stroke-width": border,
      "stroke-dasharray": dashes(node.style("border-style")),
    }),
    textOf(lines, { x, y: middle }, size, node.style("color"), node.style("font-family"), node.style("font-weight")),
  );
}

function textOf(
  lines: readonly string[],
  { x, y }: Position,
  size: number,
  fill: string,
  family: string,
  weight: string,
): SVGElement {
  const step = 1.25 * size;
  const first = y - ((lines.length - 1) * step) / 2 + 0.35 * size;
  return s(
    "text",
    { "text-anchor": "middle", "font-size": size, "font-family": family, "font-weight": weight, fill },
    lines.map((line, at) => s("tspan", { x: rounded(x), y: rounded(first + at * step) }, line)),
  );
}

function edgeOf(edge: EdgeSingular): SVGElement {
  const ends = [edge.sourceEndpoint(), ...(edge.segmentPoints() ?? []), edge.targetEndpoint()];
  const stroke = edge.style("line-color");
  const label = String(edge.style("label") ?? "");
  const size = Number.parseFloat(edge.style("font-size"));
  return s(
    "g",
    { opacity: edge.style("opacity") },
    s("polyline", {
      points: ends.map(({ x, y }) => `${rounded(x)},${rounded(y)}`).join(" "),
      fill: "none",
      stroke,
      "stroke-width": Number.parseFloat(edge.style("width")),
      "stroke-dasharray": dashes(edge.style("line-style")),
      "stroke-linejoin": "round",
    }),
    arrowOf(ends.at(-2) ?? ends[0], ends.at(-1) ?? ends[0], stroke),
    label !== "" && [
      // Behind the text, so that it can be read on the line.
      s("rect", {
        x: rounded(edge.midpoint().x - 0.3 * size * label.length - 2),
        y: rounded(edge.midpoint().y - 0.6 * size),
        width: rounded(0.6 * size * label.length + 4),
        height: rounded(1.2 * size),
        fill: edge.style("text-background-color"),
      }),
      textOf([label], edge.midpoint(), size, edge.style("color"), edge.style("font-family"), "normal"),
    ],
  );
}

function arrowOf(from: Position | undefined, to: Position | undefined, fill: string): SVGElement | null {
  if (from === undefined || to === undefined) return null;
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  if (length === 0) return null;
  const [x, y] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const corners = [
    to,
    { x: to.x - 7 * x + 3.5 * y, y: to.y - 7 * y - 3.5 * x },
    { x: to.x - 7 * x - 3.5 * y, y: to.y - 7 * y + 3.5 * x },
  ];
  return s("polygon", { points: corners.map((corner) => `${rounded(corner.x)},${rounded(corner.y)}`).join(" "), fill });
}
