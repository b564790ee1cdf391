// Positions of a picture's elements: layers from top to bottom along the data, the operations of a layer side by
// side, their records in lines. The same picture always has the same positions. Lengths are in units of the drawing.
// Pure; the page runs it in a worker (layout.ts), which gets names and layers, and no records.

import { groupBy } from "../groups";
import type { Side } from "./model";
import { foldedName, furtherName, headName, moreName, type Picture } from "./picture";

export const BOX = { width: 204, height: 40 } as const;
export const HEADER = 20;
const GAP = 8;
const PAD = 7;
const BETWEEN_GROUPS = 30;
const BETWEEN_LAYERS = 40;
const COLUMNS = 4;
/** Lines of an operation before it gets wider. */
const LINES = 3;
const MAX_WIDTH = 1900;
/** Width of a readable drawing that a laptop shows at once. */
const VISIBLE_WIDTH = 1180;

/** Centre and size, as Cytoscape has them. */
export interface Spot {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** An operation, by its node id, and what is drawn in it, by name. */
interface PlacedGroup {
  readonly id: string;
  readonly layer: number;
  readonly number: number;
  readonly items: readonly string[];
}

export interface PlacementRequest {
  readonly groups: readonly PlacedGroup[];
  /** Pairs of operations that lines lead between, one for each line: [from, to]. */
  readonly joined: readonly (readonly [string, string])[];
  /** The layers of what is folded, on each side that has any. */
  readonly folded: readonly { readonly side: Side; readonly layers: readonly number[] }[];
  readonly further: readonly Side[];
}

export interface Placement {
  /** Of groups by node id, of records by hash, of the others by the names below. */
  readonly spots: ReadonlyMap<string, Spot>;
  /** Layers from top to bottom, each its records in reading order: lines, then from left to right. */
  readonly rows: readonly (readonly string[])[];
}

interface Block {
  readonly group: PlacedGroup;
  readonly columns: number;
  readonly width: number;
  readonly height: number;
}

export function requestOf(picture: Picture): PlacementRequest {
  const nodeOf = new Map<string, string>();
  for (const { node, boxes } of picture.groups) {
    nodeOf.set(node.id, node.id);
    for (const box of boxes) nodeOf.set(box.hash, node.id);
  }
  return {
    groups: picture.groups.map(({ node, boxes, more }) => ({
      id: node.id,
      layer: node.layer,
      number: Number(node.number),
      items: [...boxes.map((box) => box.hash), ...(more > 0 ? [moreName(node.id)] : [])],
    })),
    joined: [...picture.links, ...picture.bundles].flatMap((link) => {
      const [from, to] = [nodeOf.get(link.from), nodeOf.get(link.to)];
      return from === undefined || to === undefined ? [] : [[from, to] as const];
    }),
    folded: [...picture.folded].map(([side, nodes]) => ({ side, layers: nodes.map((node) => node.layer) })),
    further: [...picture.further],
  };
}

export function placementOf(request: PlacementRequest): Placement {
  const layers = new Map(
    [...groupBy(request.groups, ({ layer }) => layer)].map(([layer, groups]) => [
      layer,
      groups.map((group) => blockOf(group, columnsFor(groups.length))),
    ]),
  );
  const order = [...layers.keys()].sort((a, b) => Math.abs(a) - Math.abs(b));
  const middles = new Map<string, number>(); // node id -> x, of what is placed already
  const lines = new Map<number, { block: Block; x: number; y: number }[]>();
  const heights = new Map<number, number>();
  for (const layer of order) {
    const blocks = sortedByNeighbours(layers.get(layer) ?? [], request, middles);
    const { placed, height } = arrangeBlocks(blocks);
    for (const position of placed) middles.set(position.block.group.id, position.x);
    lines.set(layer, placed);
    heights.set(layer, height);
  }

  const spots = new Map<string, Spot>();
  const rows: string[][] = [];
  let top = 0;
  const placeStub = (name: string): void => {
    spots.set(name, { x: 0, y: top + BOX.height / 2, width: 1.6 * BOX.width, height: BOX.height });
    rows.push([name]);
    top += BOX.height + BETWEEN_LAYERS;
  };
  const further = (side: Side): void => {
    if (request.further.includes(side)) placeStub(furtherName(side));
  };
  // The stub of the folded operations is where most of them were: between it and the record are only neighbours.
  const folded = request.folded.map(({ side, layers: all }) => ({
    side,
    before: side === "backward" ? Math.max(...all) + 0.5 : Math.min(...all) - 0.5,
  }));
  const placeFolded = (from: number, to: number): void => {
    for (const { side, before } of folded) if (from < before && before <= to) placeStub(foldedName(side));
  };
  further("backward");
  let last = Number.NEGATIVE_INFINITY;
  for (const layer of order.sort((a, b) => a - b)) {
    placeFolded(last, layer);
    last = layer;
    const row: { name: string; spot: Spot }[] = [];
    for (const { block, x, y } of lines.get(layer) ?? []) row.push(...placeBlock(block, x, top + y, spots));
    row.sort((a, b) => a.spot.y - b.spot.y || a.spot.x - b.spot.x);
    rows.push(row.map((item) => item.name));
    top += (heights.get(layer) ?? 0) + BETWEEN_LAYERS;
  }
  placeFolded(last, Number.POSITIVE_INFINITY);
  further("forward");
  return { spots, rows };
}

/** Few enough that all operations of a layer fit side by side, but at least two. */
function columnsFor(groups: number): number {
  const room = (VISIBLE_WIDTH + BETWEEN_GROUPS) / groups - BETWEEN_GROUPS - 2 * PAD;
  return Math.max(2, Math.min(COLUMNS + 1, Math.floor((room + GAP) / (BOX.width + GAP))));
}

function blockOf(group: PlacedGroup, usual: number): Block {
  const items = Math.max(1, group.items.length);
  const columns = Math.min(items, items > LINES * usual ? Math.max(usual, Math.ceil(Math.sqrt(items))) : usual);
  const lines = Math.ceil(items / columns);
  return {
    group,
    columns,
    width: columns * (BOX.width + GAP) - GAP + 2 * PAD,
    height: HEADER + lines * (BOX.height + GAP) - GAP + 2 * PAD,
  };
}

/** By the mean place of what each is joined with, nearer to the record (barycentres, after Sugiyama). */
function sortedByNeighbours(
  blocks: readonly Block[],
  { joined }: PlacementRequest,
  middles: ReadonlyMap<string, number>,
): readonly Block[] {
  const sums = new Map<string, { sum: number; count: number }>();
  const add = (id: string, other: string): void => {
    const middle = middles.get(other);
    if (middle === undefined) return;
    const total = sums.get(id) ?? { sum: 0, count: 0 };
    sums.set(id, { sum: total.sum + middle, count: total.count + 1 });
  };
  for (const [from, to] of joined) {
    add(from, to);
    add(to, from);
  }
  const mean = (block: Block): number => {
    const total = sums.get(block.group.id);
    return total === undefined ? 0 : total.sum / total.count;
  };
  return [...blocks].sort((a, b) => mean(a) - mean(b) || a.group.number - b.group.number);
}

/** Side by side around x = 0, on as many lines as the width needs. y is a block's top. */
function arrangeBlocks(blocks: readonly Block[]): { placed: { block: Block; x: number; y: number }[]; height: number } {
  const shelves: Block[][] = [[]];
  let width = 0;
  for (const block of blocks) {
    const shelf = shelves.at(-1) as Block[];
    if (shelf.length > 0 && width + block.width > MAX_WIDTH) {
      shelves.push([block]);
      width = block.width + BETWEEN_GROUPS;
    } else {
      shelf.push(block);
      width += block.width + BETWEEN_GROUPS;
    }
  }
  const placed: { block: Block; x: number; y: number }[] = [];
  let y = 0;
  for (const shelf of shelves) {
    let left = -(shelf.reduce((sum, block) => sum + block.width + BETWEEN_GROUPS, -BETWEEN_GROUPS) / 2);
    for (const block of shelf) {
      placed.push({ block, x: left + block.width / 2, y });
      left += block.width + BETWEEN_GROUPS;
    }
    y += Math.max(...shelf.map((block) => block.height), 0) + BETWEEN_GROUPS;
  }
  return { placed, height: y - BETWEEN_GROUPS };
}

function placeBlock(block: Block, x: number, top: number, spots: Map<string, Spot>): { name: string; spot: Spot }[] {
  const { group, columns, width, height } = block;
  spots.set(group.id, { x, y: top + height / 2, width, height });
  spots.set(headName(group.id), { x, y: top + PAD / 2 + HEADER / 2, width: width - 2, height: HEADER });
  return group.items.map((name, index) => {
    const column = index % columns;
    const line = Math.floor(index / columns);
    const spot = {
      x: x - width / 2 + PAD + column * (BOX.width + GAP) + BOX.width / 2,
      y: top + HEADER + PAD + line * (BOX.height + GAP) + BOX.height / 2,
      width: BOX.width,
      height: BOX.height,
    };
    spots.set(name, spot);
    return { name, spot };
  });
}
