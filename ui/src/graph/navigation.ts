// Which box the arrow keys lead to in a drawing. Pure.

import type { Arrow } from "../keys";
import type { Point } from "./placement";

export interface LineEnds {
  source: string;
  target: string;
}

/** Largest horizontal distance of boxes in one column. */
const COLUMN = 90;

/**
 * The box that an arrow leads to from this one: along a line left or right, to the neighbour in the column up or down.
 * Null where there is none.
 */
export function neighbour(
  places: { [id: string]: Point },
  lines: readonly LineEnds[],
  from: string,
  arrow: Arrow,
): string | null {
  const origin = places[from];
  if (origin === undefined) return null;
  const others = Object.entries(places).filter(([id]) => id !== from);
  if (arrow === "ArrowUp" || arrow === "ArrowDown") {
    const side = arrow === "ArrowUp" ? -1 : 1;
    return nearest(
      others.filter(([, { x, y }]) => Math.abs(x - origin.x) < COLUMN && side * (y - origin.y) > 0),
      origin,
    );
  }
  const linked = new Set(
    arrow === "ArrowLeft"
      ? lines.filter(({ target }) => target === from).map(({ source }) => source)
      : lines.filter(({ source }) => source === from).map(({ target }) => target),
  );
  return nearest(
    others.filter(([id]) => linked.has(id)),
    origin,
  );
}

function nearest(candidates: [string, Point][], { x, y }: Point): string | null {
  const distance = ([, place]: [string, Point]) => Math.hypot(place.x - x, place.y - y);
  return candidates.sort((one, other) => distance(one) - distance(other))[0]?.[0] ?? null;
}

/** The first box to the reader: the leftmost, of these the uppermost. */
export function leftmost(places: { [id: string]: Point }): string | null {
  const sorted = Object.entries(places).sort(([, one], [, other]) => one.x - other.x || one.y - other.y);
  return sorted[0]?.[0] ?? null;
}
