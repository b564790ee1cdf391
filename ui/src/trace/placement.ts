// Positions of a picture's elements: layers from left to right along the data, the operations of a layer one below the
// other, their records in columns. The same picture always has the same positions. Lengths are in units of the drawing.
// Pure; the page runs it in a worker (layout.ts), which gets names and layers, and no records.

import { groupBy } from "../groups";
import type { Side } from "./model";
import { foldedName, furtherName, headName, moreName, type Picture } from "./picture";
import { BETWEEN_LAYERS, HEIGHT, PAD } from "./size";

export const HEADER = 34;
const GAP = 8;
const BETWEEN_GROUPS = 26;
/** Records below each other before an operation gets wider. */
const LINES = 8;
/** Records are some four times as wide as high: so many lines make a block as wide as high. */
const SQUARE = 4;
/** Of a layer, before its operations stand side by side. */
const MAX_HEIGHT = 900;
/** Of what stands for operations that are not drawn. */
const STUB_WIDTH = 150;

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
  /** It stands for several operations, which are not drawn. */
  readonly isStub?: boolean;
}

export interface PlacementRequest {
  /** Of a record. */
  readonly width: number;
  readonly groups: readonly PlacedGroup[];
  /** Pairs of operations that lines lead between, one for each line: [from, to]. */
  readonly joined: readonly (readonly [string, string])[];
  /** What stands for the middle of a side, in front of (as the data goes) that layer. */
  readonly folded: readonly { readonly side: Side; readonly layer: number }[];
  readonly further: readonly Side[];
}

export interface Placement {
  /** Of groups by node id, of records by hash, of the others by the names below. */
  readonly spots: ReadonlyMap<string, Spot>;
  /** Layers from left to right, each its records in reading order: columns, then from top to bottom. */
  readonly layers: readonly (readonly string[])[];
}

interface Block {
  readonly group: PlacedGroup;
  /** Records below each other. */
  readonly lines: number;
  readonly width: number;
  readonly height: number;
}

export function requestOf(picture: Picture): PlacementRequest {
  const nodeOf = new Map<string, string>();
  for (const { node, boxes } of picture.groups) {
    nodeOf.set(node.id, node.id);
    for (const box of boxes) nodeOf.set(box.hash, node.id);
  }
  const groups = picture.groups.map(({ node, boxes, more }) => ({
    id: node.id,
    layer: node.layer,
    number: Number(node.number),
    items: [...boxes.map((box) => box.hash), ...(more > 0 ? [moreName(node.id)] : [])],
  }));
  const stubs = [...picture.folded]
    .filter(([, { canOpen }]) => canOpen)
    .map(([key, { layer, nodes }]) => {
      const name = foldedName(key);
      nodeOf.set(name, name);
      return { id: name, layer, number: Number(nodes[0]?.number ?? 0), items: [name], isStub: true };
    });
  return {
    width: picture.width,
    groups: [...groups, ...stubs],
    joined: [...picture.links, ...picture.bundles].flatMap((link) => {
      const [from, to] = [nodeOf.get(link.from), nodeOf.get(link.to)];
      return from === undefined || to === undefined ? [] : [[from, to] as const];
    }),
    folded: [...picture.folded.values()].flatMap(({ side, canOpen, layer }) => (canOpen ? [] : [{ side, layer }])),
    further: [...picture.further],
  };
}

export function placementOf(request: PlacementRequest): Placement {
  const blocks = new Map(
    [...groupBy(request.groups, ({ layer }) => layer)].map(([layer, groups]) => [
      layer,
      groups.map((group) => blockOf(group, request.width)),
    ]),
  );
  const order = [...blocks.keys()].sort((a, b) => Math.abs(a) - Math.abs(b));
  const middles = new Map<string, number>(); // node id -> y, of what is placed already
  const arranged = new Map<number, Arranged>();
  for (const layer of order) {
    const layerBlocks = arrangeBlocks(sortedByNeighbours(blocks.get(layer) ?? [], request, middles));
    for (const position of layerBlocks.placed) middles.set(position.block.group.id, position.y);
    arranged.set(layer, layerBlocks);
  }

  const spots = new Map<string, Spot>();
  const layers: string[][] = [];
  let left = 0;
  const placeStub = (name: string): void => {
    spots.set(name, { x: left + STUB_WIDTH / 2, y: 0, width: STUB_WIDTH, height: HEIGHT });
    layers.push([name]);
    left += STUB_WIDTH + BETWEEN_LAYERS;
  };
  const further = (side: Side): void => {
    if (request.further.includes(side)) placeStub(furtherName(side));
  };
  const folded = request.folded.map(({ side, layer }) => ({
    side,
    before: side === "backward" ? layer + 0.5 : layer - 0.5,
  }));
  const placeFolded = (from: number, to: number): void => {
    for (const { side, before } of folded) if (from < before && before <= to) placeStub(foldedName(side));
  };
  further("backward");
  let last = Number.NEGATIVE_INFINITY;
  for (const layer of order.sort((a, b) => a - b)) {
    placeFolded(last, layer);
    last = layer;
    const { placed, width } = arranged.get(layer) ?? { placed: [], width: 0 };
    const items = placed.flatMap(({ block, x, y }) => placeBlock(block, left + x, y, request.width, spots));
    items.sort((a, b) => a.spot.x - b.spot.x || a.spot.y - b.spot.y);
    layers.push(items.map((item) => item.name));
    left += width + BETWEEN_LAYERS;
  }
  placeFolded(last, Number.POSITIVE_INFINITY);
  further("forward");
  return { spots, layers };
}

function blockOf(group: PlacedGroup, width: number): Block {
  if (group.isStub === true) return { group, lines: 1, width: STUB_WIDTH, height: HEIGHT };
  const items = Math.max(1, group.items.length);
  const lines = Math.min(items, Math.max(LINES, Math.ceil(Math.sqrt(SQUARE * items))));
  const columns = Math.ceil(items / lines);
  return {
    group,
    lines,
    width: columns * (width + GAP) - GAP + 2 * PAD,
    height: HEADER + lines * (HEIGHT + GAP) - GAP + 2 * PAD,
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

interface Arranged {
  /** x is a block's middle from the left edge of the layer, y its middle. */
  readonly placed: readonly { readonly block: Block; readonly x: number; readonly y: number }[];
  readonly width: number;
}

/** One below the other around y = 0, in as many columns as the height needs. */
function arrangeBlocks(blocks: readonly Block[]): Arranged {
  const columns: Block[][] = [[]];
  let height = 0;
  for (const block of blocks) {
    const column = columns.at(-1) as Block[];
    if (column.length > 0 && height + block.height > MAX_HEIGHT) {
      columns.push([block]);
      height = block.height + BETWEEN_GROUPS;
    } else {
      column.push(block);
      height += block.height + BETWEEN_GROUPS;
    }
  }
  const placed: { block: Block; x: number; y: number }[] = [];
  let left = 0;
  for (const column of columns) {
    const width = Math.max(...column.map((block) => block.width), 0);
    let top = -(column.reduce((sum, block) => sum + block.height + BETWEEN_GROUPS, -BETWEEN_GROUPS) / 2);
    for (const block of column) {
      placed.push({ block, x: left + width / 2, y: top + block.height / 2 });
      top += block.height + BETWEEN_GROUPS;
    }
    left += width + BETWEEN_GROUPS;
  }
  return { placed, width: left - BETWEEN_GROUPS };
}

function placeBlock(
  block: Block,
  x: number,
  y: number,
  itemWidth: number,
  spots: Map<string, Spot>,
): { name: string; spot: Spot }[] {
  const { group, lines, width, height } = block;
  if (group.isStub === true) {
    const spot = { x, y, width, height };
    spots.set(group.id, spot);
    return [{ name: group.id, spot }];
  }
  const top = y - height / 2;
  spots.set(group.id, { x, y, width, height });
  spots.set(headName(group.id), { x, y: top + PAD / 2 + HEADER / 2, width: width - 2, height: HEADER });
  return group.items.map((name, index) => {
    const spot = {
      x: x - width / 2 + PAD + Math.floor(index / lines) * (itemWidth + GAP) + itemWidth / 2,
      y: top + HEADER + PAD + (index % lines) * (HEIGHT + GAP) + HEIGHT / 2,
      width: itemWidth,
      height: HEIGHT,
    };
    spots.set(name, spot);
    return { name, spot };
  });
}
