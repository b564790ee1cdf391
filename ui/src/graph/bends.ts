// How a line that bends is described for Cytoscape. Pure.

import type { Point } from "./placement";

/** Bends as Cytoscape takes them: how far along the straight line, and how far beside it. */
export function segments(
  source: Point,
  target: Point,
  bends: readonly Point[],
): { weights: number[]; distances: number[] } {
  const [x, y] = [target.x - source.x, target.y - source.y];
  const length = Math.hypot(x, y);
  if (length === 0) return { weights: [], distances: [] };
  const [nx, ny] = [x / length, y / length];
  return {
    weights: bends.map((bend) => ((bend.x - source.x) * nx + (bend.y - source.y) * ny) / length),
    distances: bends.map((bend) => (bend.y - source.y) * nx - (bend.x - source.x) * ny),
  };
}
