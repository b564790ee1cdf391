// Which part of a placement is visible, and at which size: Cytoscape's zoom and pan. Pure.

import type { Placement, Spot } from "./placement";

/** Smaller text cannot be read. */
export const MIN_READABLE_ZOOM = 0.8;
const MARGIN = 14;

export interface Frame {
  readonly width: number;
  readonly height: number;
}

/** A place (x, y) is seen at (x * zoom + pan.x, y * zoom + pan.y) of the frame. */
export interface Viewport {
  readonly zoom: number;
  readonly pan: { readonly x: number; readonly y: number };
}

export interface Bounds {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export function boundsOf(placement: Placement): Bounds {
  const all = { left: 0, right: 0, top: 0, bottom: 0 };
  for (const { x, y, width, height } of placement.spots.values()) {
    all.left = Math.min(all.left, x - width / 2);
    all.right = Math.max(all.right, x + width / 2);
    all.top = Math.min(all.top, y - height / 2);
    all.bottom = Math.max(all.bottom, y + height / 2);
  }
  return all;
}

/** Everything, in the middle; never larger than it is. */
export function fitAll(bounds: Bounds, frame: Frame): Viewport {
  const [width, height] = [bounds.right - bounds.left, bounds.bottom - bounds.top];
  const zoom = Math.min(1, (frame.width - 2 * MARGIN) / width, (frame.height - 2 * MARGIN) / height);
  return centred(Math.max(0.05, zoom), (bounds.left + bounds.right) / 2, (bounds.top + bounds.bottom) / 2, frame);
}

/** Moved so that there is no empty space beside what could be seen. */
function withoutGaps({ zoom, pan }: Viewport, bounds: Bounds, frame: Frame): Viewport {
  const x = clampedPan(pan.x, bounds.left * zoom, bounds.right * zoom, frame.width);
  return { zoom, pan: { x, y: clampedPan(pan.y, bounds.top * zoom, bounds.bottom * zoom, frame.height) } };
}

function clampedPan(pan: number, first: number, last: number, room: number): number {
  const size = last - first;
  if (size <= room - 2 * MARGIN) return (room - size) / 2 - first;
  return Math.min(MARGIN - first, Math.max(room - MARGIN - first - size, pan));
}

/** The same, if the spot is in it and can be read; else around the spot. */
export function reveal(viewport: Viewport, bounds: Bounds, frame: Frame, spot: Spot): Viewport {
  const zoom = Math.max(MIN_READABLE_ZOOM, viewport.zoom);
  const [x, y] = [spot.x * zoom + viewport.pan.x, spot.y * zoom + viewport.pan.y];
  const [halfWidth, halfHeight] = [(spot.width * zoom) / 2, (spot.height * zoom) / 2];
  const isVisible =
    x - halfWidth >= 0 && x + halfWidth <= frame.width && y - halfHeight >= 0 && y + halfHeight <= frame.height;
  return zoom === viewport.zoom && isVisible
    ? viewport
    : withoutGaps(centred(zoom, spot.x, spot.y, frame), bounds, frame);
}

const centred = (zoom: number, x: number, y: number, frame: Frame): Viewport => ({
  zoom,
  pan: { x: frame.width / 2 - x * zoom, y: frame.height / 2 - y * zoom },
});
