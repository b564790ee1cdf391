// A layout from left to right in several rows, as text is: a chain of many layers is a strip, whose boxes are too small to
// be read where all of it has to be in sight. Pure.

import { groupBy } from "../groups";
import type { Box, Line, Piece, Point } from "./placement";

interface Size {
  width: number;
  height: number;
}

/** What of the strip a row has, and how much lower the row is. */
interface Row {
  left: number;
  right: number;
  top: number;
  bottom: number;
  down: number;
}

/** Between rows, and beside them: room for the lines from one to the next. */
const BETWEEN = 44;
const BESIDE = 10;

export const zoomIn = ({ width, height }: Size, room: Size): number =>
  Math.min(1, room.width / width, room.height / height);

/** The same in as many rows as make it largest in this room; as it is where rows make it no larger. */
export function inRows(piece: Piece, boxes: readonly Box[], lines: readonly Line[], room: Size): Piece {
  const layers = [...groupBy(boxes, ({ id }) => Math.round(piece.boxes[id]?.x ?? 0))]
    .sort(([one], [other]) => one - other)
    .map(([, all]) => all);
  let best = piece;
  // A row has two layers at least: rows of one would be a layout from the top down.
  for (let count = 2; 2 * count <= layers.length; count += 1) {
    const candidate = arranged(piece, rowsOf(layers, piece, piece.width / count), boxes, lines);
    if (zoomIn(candidate, room) > zoomIn(best, room)) best = candidate;
    if (candidate.height / candidate.width > room.height / room.width) break; // more rows are higher still
  }
  return best;
}

/** As many layers in each row as are not wider than this. */
function rowsOf(layers: readonly (readonly Box[])[], piece: Piece, width: number): Row[] {
  const rows: Row[] = [];
  for (const layer of layers) {
    const sides = layer.map((box) => ({ at: piece.boxes[box.id] ?? { x: 0, y: 0 }, ...box }));
    const left = Math.min(...sides.map(({ at, width }) => at.x - width / 2));
    const right = Math.max(...sides.map(({ at, width }) => at.x + width / 2));
    const top = Math.min(...sides.map(({ at, height }) => at.y - height / 2));
    const bottom = Math.max(...sides.map(({ at, height }) => at.y + height / 2));
    const row = rows.at(-1);
    if (row === undefined || right - row.left > width) {
      rows.push({ left, right, top, bottom, down: 0 });
    } else {
      row.right = Math.max(row.right, right);
      row.top = Math.min(row.top, top);
      row.bottom = Math.max(row.bottom, bottom);
    }
  }
  let down = 0;
  for (const row of rows) {
    row.down = down - row.top;
    down += row.bottom - row.top + BETWEEN;
  }
  return rows;
}

/** Whether a point is beside the boxes of a row, and not between two rows. */
const isIn =
  (row: Row | undefined) =>
  ({ x }: Point) =>
    row !== undefined && x >= row.left && x <= row.right;

function arranged(piece: Piece, rows: readonly Row[], boxes: readonly Box[], lines: readonly Line[]): Piece {
  const [width, height] = [
    Math.max(...rows.map(({ left, right }) => right - left)),
    rows.reduce((sum, { top, bottom }) => sum + bottom - top + BETWEEN, -BETWEEN),
  ];
  const rowAt = (x: number): number => {
    const behind = rows.findIndex(({ right }) => x <= right);
    return behind < 0 ? rows.length - 1 : behind;
  };
  const moved = ({ x, y }: Point, at: number): Point => {
    const { left = 0, down = 0 } = rows[at] ?? {};
    return { x: x - left, y: y + down };
  };
  const places: Piece["boxes"] = {};
  for (const { id } of boxes) {
    const place = piece.boxes[id] ?? { x: 0, y: 0 };
    places[id] = moved(place, rowAt(place.x));
  }
  const bends: Piece["bends"] = {};
  for (const { id, source, target } of lines) {
    const [from, to] = [piece.boxes[source], piece.boxes[target]].map((place) => rowAt(place?.x ?? 0));
    const own = piece.bends[id] ?? [];
    if (from === undefined || to === undefined || from === to) {
      bends[id] = own.map((point) => moved(point, from ?? 0));
      continue;
    }
    const before = own.filter(isIn(rows[from])).map((point) => moved(point, from));
    const behind = own.filter(isIn(rows[to])).map((point) => moved(point, to));
    const [start, end] = [before.at(-1) ?? places[source], behind[0] ?? places[target]];
    const { top = 0, down = 0 } = rows[to] ?? {};
    const above = top + down - BETWEEN / 2;
    bends[id] = [
      ...before,
      { x: width + BESIDE, y: start?.y ?? 0 },
      { x: width + BESIDE, y: above },
      { x: -BESIDE, y: above },
      { x: -BESIDE, y: end?.y ?? 0 },
      ...behind,
    ];
  }
  return { width, height, boxes: places, bends };
}
