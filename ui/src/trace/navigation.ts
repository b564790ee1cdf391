// Which record the arrow keys lead to: left and right along a layer, up and down to what the record is linked with,
// else to the nearest of the next layer.

import type { Arrow } from "../keys";
import type { Adjacency } from "./adjacency";
import type { Placement } from "./placement";

/** The name of the record or stub; null if there is none in that direction. */
export function neighbour(placement: Placement, adjacency: Adjacency, from: string, arrow: Arrow): string | null {
  const layer = placement.rows.findIndex((row) => row.includes(from));
  const row = placement.rows[layer];
  if (row === undefined) return null;
  if (arrow === "ArrowLeft" || arrow === "ArrowRight") {
    return row[row.indexOf(from) + (arrow === "ArrowRight" ? 1 : -1)] ?? null;
  }
  const isUp = arrow === "ArrowUp";
  const others = new Set(isUp ? adjacency.inputs(from) : adjacency.outputs(from));
  const rows = isUp ? placement.rows.slice(0, layer).reverse() : placement.rows.slice(layer + 1);
  for (const rowNames of rows) {
    const linked = rowNames.filter((name) => others.has(name));
    if (linked.length > 0) return nearest(placement, from, linked);
  }
  const next = rows.find((rowNames) => rowNames.length > 0);
  return next === undefined ? null : nearest(placement, from, next);
}

function nearest(placement: Placement, from: string, names: readonly string[]): string | null {
  const { x, y } = placement.spots.get(from) ?? { x: 0, y: 0 };
  const distance = (name: string): number => {
    const other = placement.spots.get(name) ?? { x, y };
    return Math.hypot(other.x - x, other.y - y);
  };
  return [...names].sort((a, b) => distance(a) - distance(b))[0] ?? null;
}
