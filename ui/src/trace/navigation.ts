// Which record the arrow keys lead to: up and down along a layer, left and right to what the record is linked with,
// else to the nearest of the next layer.

import type { Arrow } from "../keys";
import type { Adjacency } from "./adjacency";
import type { Placement } from "./placement";

/** The name of the record or stub; null if there is none in that direction. */
export function neighbour(placement: Placement, adjacency: Adjacency, from: string, arrow: Arrow): string | null {
  const at = placement.layers.findIndex((layer) => layer.includes(from));
  const layer = placement.layers[at];
  if (layer === undefined) return null;
  if (arrow === "ArrowUp" || arrow === "ArrowDown") {
    return layer[layer.indexOf(from) + (arrow === "ArrowDown" ? 1 : -1)] ?? null;
  }
  const isBack = arrow === "ArrowLeft";
  const others = new Set(isBack ? adjacency.inputs(from) : adjacency.outputs(from));
  const layers = isBack ? placement.layers.slice(0, at).reverse() : placement.layers.slice(at + 1);
  for (const names of layers) {
    const linked = names.filter((name) => others.has(name));
    if (linked.length > 0) return nearest(placement, from, linked);
  }
  const next = layers.find((names) => names.length > 0);
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
