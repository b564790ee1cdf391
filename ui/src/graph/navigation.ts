// Which box the arrow keys lead to in a drawing. Pure.

import type { Arrow } from "../keys";
import type { Point } from "./placement";

export interface LineEnds {
  source: string;
  target: string;
}

/** Largest vertical distance of boxes in one row. */
const ROW = 40;

/**
 * The box that an arrow leads to from this one: along a line up or down, to the neighbour in the row left or right.
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
  if (arrow === "ArrowLeft" || arrow === "ArrowRight") {
    const side = arrow === "ArrowLeft" ? -1 : 1;
    return nearest(
      others.filter(([, { x, y }]) => Math.abs(y - origin.y) < ROW && side * (x - origin.x) > 0),
      origin,
    );
  }
  const linked = new Set(
    arrow === "ArrowUp"
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

/** The first box to the reader: the uppermost, of these the leftmost. */
export function topmost(places: { [id: string]: Point }): string | null {
  const sorted = Object.entries(places).sort(([, one], [, other]) => one.y - other.y || one.x - other.x);
  return sorted[0]?.[0] ?? null;
}

/** Places of a drawing from left to right, as those of one from the top down. */
export const turnedPlaces = (places: { [id: string]: Point }): { [id: string]: Point } =>
  Object.fromEntries(Object.entries(places).map(([id, { x, y }]) => [id, { x: y, y: x }]));

const TURNED: { [arrow in Arrow]: Arrow } = {
  ArrowLeft: "ArrowUp",
  ArrowUp: "ArrowLeft",
  ArrowRight: "ArrowDown",
  ArrowDown: "ArrowRight",
};

/** The arrow that leads to the same box there. */
export const turned = (arrow: Arrow): Arrow => TURNED[arrow];
