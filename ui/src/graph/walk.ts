// Where arrow keys lead in a drawing, and how a line that bends is told to Cytoscape. Pure.

import type { Point } from "./layered";

export type Arrow = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

export const isArrow = (key: string): key is Arrow => /^Arrow(Up|Down|Left|Right)$/.test(key);

interface Ends {
  source: string;
  target: string;
}

/** How far boxes of one row may stand above or below each other. */
const ROW = 40;

/**
 * The box that an arrow leads to from this one: along a line up or down, to the neighbour in the row left or right.
 * Null where there is none.
 */
export function neighbour(
  places: { [id: string]: Point },
  lines: readonly Ends[],
  from: string,
  arrow: Arrow,
): string | null {
  const here = places[from];
  if (here === undefined) return null;
  const others = Object.entries(places).filter(([id]) => id !== from);
  if (arrow === "ArrowLeft" || arrow === "ArrowRight") {
    const side = arrow === "ArrowLeft" ? -1 : 1;
    return nearest(
      others.filter(([, { x, y }]) => Math.abs(y - here.y) < ROW && side * (x - here.x) > 0),
      here,
    );
  }
  const linked = new Set(
    arrow === "ArrowUp"
      ? lines.filter(({ target }) => target === from).map(({ source }) => source)
      : lines.filter(({ source }) => source === from).map(({ target }) => target),
  );
  return nearest(
    others.filter(([id]) => linked.has(id)),
    here,
  );
}

function nearest(found: [string, Point][], { x, y }: Point): string | null {
  const far = ([, place]: [string, Point]) => Math.hypot(place.x - x, place.y - y);
  return found.sort((one, other) => far(one) - far(other))[0]?.[0] ?? null;
}

/** The first box to the reader: the uppermost, of these the leftmost. */
export function topmost(places: { [id: string]: Point }): string | null {
  const found = Object.entries(places).sort(([, one], [, other]) => one.y - other.y || one.x - other.x);
  return found[0]?.[0] ?? null;
}

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
