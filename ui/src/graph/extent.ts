// How much of the plane boxes take. Pure.

import type { Size } from "./labels";
import type { Placement } from "./placement";

export interface Identified {
  id: string;
}

export function sides<Box extends Identified>(
  boxes: readonly Box[],
  places: Placement["boxes"],
  sizeOf: (box: Box) => Size,
) {
  const all = boxes.map((box) => ({ at: places[box.id] ?? { x: 0, y: 0 }, ...sizeOf(box) }));
  return {
    left: Math.min(...all.map(({ at, width }) => at.x - width / 2)),
    top: Math.min(...all.map(({ at, height }) => at.y - height / 2)),
    right: Math.max(...all.map(({ at, width }) => at.x + width / 2)),
    bottom: Math.max(...all.map(({ at, height }) => at.y + height / 2)),
  };
}

/** Heights of a drawing on the page. */
export interface Heights {
  least: number;
  most: number;
}

/** Beyond the boxes: frames, and room to the border. */
const MARGIN = 64;

/** How high a drawing must be to show all at once in this width, within limits. */
export function heightOf<Box extends Identified>(
  boxes: readonly Box[],
  places: Placement["boxes"],
  sizeOf: (box: Box) => Size,
  room: number,
  { least, most }: Heights,
): number {
  const { left, top, right, bottom } = sides(boxes, places, sizeOf);
  const zoom = Math.min(1, room / (right - left + MARGIN));
  return Math.round(Math.max(least, Math.min(most, (bottom - top + MARGIN) * zoom)));
}

/** How large all of it is in this room: 1 for its own size. */
export function zoomOf<Box extends Identified>(
  boxes: readonly Box[],
  places: Placement["boxes"],
  sizeOf: (box: Box) => Size,
  room: Size,
): number {
  const { left, top, right, bottom } = sides(boxes, places, sizeOf);
  return Math.min(1, room.width / (right - left + MARGIN), room.height / (bottom - top + MARGIN));
}
