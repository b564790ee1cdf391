// A layered layout from left to right (dagre: Sugiyama's method). Pure, and slow for large graphs: the page runs it in a
// worker (layout.ts).
//
// Boxes within a box are laid out first, to the right or down, whichever makes the drawing larger in its frame; then the
// outer ones, each as large as its contents. That keeps the pieces small, so that hundreds of boxes take a moment, and
// boxes of one holder together. Lines from holder to holder all take the bends of one line between the two. A long chain
// is laid out in rows (rows.ts).

import { Graph, layout } from "@dagrejs/dagre";
import { groupBy } from "../groups";
import { inRows, zoomIn } from "./rows";

export interface Box {
  id: string;
  width: number;
  height: number;
  /** The box that holds this one; a holder has none itself. */
  parent?: string;
}

export interface Line {
  id: string;
  source: string;
  target: string;
  /** Of its label, for which room is left. */
  width?: number;
  height?: number;
}

export interface LayoutRequest {
  boxes: Box[];
  lines: Line[];
  /** Between neighbours, and between layers. */
  gap?: { x: number; y: number };
  /** Room of the drawing: of several layouts the one is taken that is largest in it. */
  frame?: Frame;
}

interface Frame {
  width: number;
  height: number;
}

/** Where lines lead. */
type Direction = "down" | "right";

export interface Point {
  x: number;
  y: number;
}

export interface Placement {
  /** Middle of each box. */
  boxes: { [id: string]: Point };
  /** Where each line bends, its ends left out. */
  bends: { [id: string]: Point[] };
}

export interface Piece extends Placement {
  width: number;
  height: number;
}

/** Padding of a holder; at the top, room for its name. */
const PADDING = 18;
const TITLE = 20;
/** How much smaller a drawing may be that leads to the right throughout. */
const PREFERRED = 1.05;
/** A smaller drawing is laid out in rows, if that makes it so much larger. */
const READABLE = 0.75;
const WORTH = 1.15;
/** Beyond this many boxes a simpler ranking is used, which takes half of the time. */
const LARGE = 60;

export function placementOf({ boxes, lines, gap = { x: 24, y: 44 }, frame }: LayoutRequest): Placement {
  if (frame === undefined) return nested(boxes, lines, gap, "right");
  const isFramed = boxes.some(({ parent }) => parent !== undefined);
  const within: Direction[] = !isFramed ? ["right"] : boxes.length > LARGE ? ["down"] : ["right", "down"];
  const largest = (room?: Frame): Piece =>
    within
      .map((direction) => nested(boxes, lines, gap, direction, room))
      .reduce((right, down) => (zoomIn(right, frame) * PREFERRED >= zoomIn(down, frame) ? right : down));
  const strip = largest();
  if (zoomIn(strip, frame) >= READABLE) return strip;
  const rows = largest(frame);
  return zoomIn(rows, frame) > zoomIn(strip, frame) * WORTH ? rows : strip;
}

/** `within`: where lines between boxes of one holder lead. In a `room`, what leads to the right may be in rows. */
function nested(boxes: Box[], lines: Line[], gap: { x: number; y: number }, within: Direction, room?: Frame): Piece {
  const holder = new Map(boxes.map(({ id, parent }) => [id, parent ?? id]));
  const joined = lines.filter(({ source, target }) => source !== target && holder.has(source) && holder.has(target));
  const members = groupBy(
    boxes.filter(({ parent }) => parent !== undefined),
    ({ parent }) => parent ?? "",
  );
  const inner = new Map<string, Piece>();
  for (const [id, content] of members) {
    const inside = joined.filter(({ source, target }) => holder.get(source) === id && holder.get(target) === id);
    const piece = layoutPiece(content, inside, gap, within);
    inner.set(id, room === undefined || within === "down" ? piece : inRows(piece, content, inside, room));
  }
  const between = new Map<string, Line>();
  for (const line of joined) {
    const [source, target] = [holder.get(line.source) ?? "", holder.get(line.target) ?? ""];
    if (source === target) continue;
    const id = JSON.stringify([source, target]);
    const { width = 0, height = 0 } = between.get(id) ?? {};
    const room = { width: Math.max(width, line.width ?? 0), height: Math.max(height, line.height ?? 0) };
    between.set(id, { id, source, target, ...room });
  }
  const outermost = boxes
    .filter(({ parent }) => parent === undefined)
    .map(({ id, width, height }) => {
      const content = inner.get(id);
      if (content === undefined) return { id, width, height };
      return { id, width: content.width + 2 * PADDING, height: content.height + 2 * PADDING + TITLE };
    });
  const joining = [...between.values()];
  const strip = layoutPiece(outermost, joining, gap, "right");
  const outer = room === undefined ? strip : inRows(strip, outermost, joining, room);
  return { ...combined(joined, holder, inner, outer), width: outer.width, height: outer.height };
}

const turnedPoint = ({ x, y }: Point): Point => ({ x: y, y: x });

/** Boxes, or room for labels of lines. */
const turned = <Size extends { width?: number; height?: number }>(all: Size[]): Size[] =>
  all.map((one) => ({ ...one, width: one.height, height: one.width }));

const turnedPlacement = ({ boxes, bends }: Placement): Placement => ({
  boxes: Object.fromEntries(Object.entries(boxes).map(([id, at]) => [id, turnedPoint(at)])),
  bends: Object.fromEntries(Object.entries(bends).map(([id, points]) => [id, points.map(turnedPoint)])),
});

/** The inner pieces in their places of the outer one. */
function combined(lines: Line[], holder: Map<string, string>, inner: Map<string, Piece>, outer: Piece): Placement {
  const placed: Placement = { boxes: { ...outer.boxes }, bends: {} };
  const corner = (id: string): Point => {
    const [middle, content] = [outer.boxes[id] ?? { x: 0, y: 0 }, inner.get(id)];
    return { x: middle.x - (content?.width ?? 0) / 2, y: middle.y - (content?.height ?? 0) / 2 + TITLE / 2 };
  };
  for (const [id, content] of inner) {
    const at = corner(id);
    for (const [member, { x, y }] of Object.entries(content.boxes)) placed.boxes[member] = { x: at.x + x, y: at.y + y };
  }
  for (const { id, source, target } of lines) {
    const [from, to] = [holder.get(source) ?? "", holder.get(target) ?? ""];
    if (from !== to) {
      const bends = outer.bends[JSON.stringify([from, to])] ?? [];
      // Between neighbouring holders the way is free: their line is straight from box to box.
      placed.bends[id] = bends.length === 1 && (inner.has(from) || inner.has(to)) ? [] : bends;
      continue;
    }
    const at = corner(from);
    placed.bends[id] = (inner.get(from)?.bends[id] ?? []).map(({ x, y }) => ({ x: at.x + x, y: at.y + y }));
  }
  return placed;
}

/** Boxes that hold none, from (0, 0) on. */
function layoutPiece(boxes: Box[], lines: Line[], gap: { x: number; y: number }, direction: Direction): Piece {
  const placement =
    direction === "down"
      ? layeredPlacement(boxes, lines, gap)
      : turnedPlacement(layeredPlacement(turned(boxes), turned(lines), gap));
  const places = boxes.map(({ id, width, height }) => ({ at: placement.boxes[id] ?? { x: 0, y: 0 }, width, height }));
  const left = Math.min(...places.map(({ at, width }) => at.x - width / 2));
  const top = Math.min(...places.map(({ at, height }) => at.y - height / 2));
  const moved = ({ x, y }: Point): Point => ({ x: x - left, y: y - top });
  return {
    width: Math.max(...places.map(({ at, width }) => at.x + width / 2)) - left,
    height: Math.max(...places.map(({ at, height }) => at.y + height / 2)) - top,
    boxes: Object.fromEntries(Object.entries(placement.boxes).map(([id, at]) => [id, moved(at)])),
    bends: Object.fromEntries(Object.entries(placement.bends).map(([id, points]) => [id, points.map(moved)])),
  };
}

/** From the top down. */
function layeredPlacement(boxes: Box[], lines: Line[], gap: { x: number; y: number }): Placement {
  try {
    return dagrePlacement(boxes, lines, gap);
  } catch {
    return rowPlacement(boxes, lines, gap); // dagre gives up on some graphs ("not possible to find intersection")
  }
}

function dagrePlacement(boxes: Box[], lines: Line[], gap: { x: number; y: number }): Placement {
  const graph = new Graph({ directed: true, multigraph: true });
  const ranker = boxes.length > LARGE ? "tight-tree" : "network-simplex";
  graph.setGraph({ rankdir: "TB", nodesep: gap.x, ranksep: gap.y, edgesep: 14, ranker });
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  for (const { id, source, target, width = 0, height = 0 } of lines) {
    graph.setEdge(source, target, { width, height, labelpos: "c" }, id);
  }
  layout(graph);
  const placed: Placement = { boxes: {}, bends: {} };
  for (const { id } of boxes) {
    const { x, y } = graph.node(id) as Point;
    placed.boxes[id] = { x, y };
  }
  for (const edge of graph.edges()) {
    const { points = [] } = graph.edge(edge) as { points?: Point[] };
    placed.bends[edge.name ?? ""] = points.slice(1, -1).map(({ x, y }) => ({ x, y }));
  }
  return placed;
}

/** Row by row: each box below all that it reads, otherwise in the given order. Lines are straight. */
export function rowPlacement(boxes: Box[], lines: Line[], gap: { x: number; y: number }): Placement {
  const row = new Map(boxes.map(({ id }) => [id, 0]));
  // Settled after as many rounds as there are boxes; more would mean a cycle, which then stays flat.
  for (let round = 0, isChanged = true; isChanged && round < boxes.length; round += 1) {
    isChanged = false;
    for (const { source, target } of lines) {
      if ((row.get(target) ?? 0) > (row.get(source) ?? 0)) continue;
      row.set(target, (row.get(source) ?? 0) + 1);
      isChanged = true;
    }
  }
  const placed: Placement = { boxes: {}, bends: {} };
  let top = 0;
  for (const [, rowBoxes] of [...groupBy(boxes, ({ id }) => row.get(id) ?? 0)].sort(([one], [other]) => one - other)) {
    const height = Math.max(...rowBoxes.map((box) => box.height));
    let left = -rowBoxes.reduce((sum, { width }) => sum + width + gap.x, -gap.x) / 2;
    for (const { id, width } of rowBoxes) {
      placed.boxes[id] = { x: left + width / 2, y: top + height / 2 };
      left += width + gap.x;
    }
    top += height + gap.y;
  }
  return placed;
}
