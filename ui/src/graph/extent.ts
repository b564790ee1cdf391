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
