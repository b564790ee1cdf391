// Which part of a placement is seen, and how large. Pure: a sight is Cytoscape's zoom and pan.

import type { Placement, Spot } from "./placement";

/** Smaller text cannot be read. */
export const LEAST_ZOOM = 0.8;
const MARGIN = 14;

export interface Frame {
  readonly width: number;
  readonly height: number;
}

/** A place (x, y) is seen at (x * zoom + pan.x, y * zoom + pan.y) of the frame. */
export interface Sight {
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
export function whole(bounds: Bounds, frame: Frame): Sight {
  const [width, height] = [bounds.right - bounds.left, bounds.bottom - bounds.top];
  const zoom = Math.min(1, (frame.width - 2 * MARGIN) / width, (frame.height - 2 * MARGIN) / height);
  return centred(Math.max(0.05, zoom), (bounds.left + bounds.right) / 2, (bounds.top + bounds.bottom) / 2, frame);
}

/** Everything if it can be read then, else the part around a spot, without empty space beside it. */
export function around(bounds: Bounds, frame: Frame, spot: Spot | undefined): Sight {
  const all = whole(bounds, frame);
  if (all.zoom >= LEAST_ZOOM) return all;
  const middle = { x: (bounds.left + bounds.right) / 2, y: (bounds.top + bounds.bottom) / 2 };
  return filled(centred(LEAST_ZOOM, spot?.x ?? middle.x, spot?.y ?? middle.y, frame), bounds, frame);
}

/** Moved so that there is no empty space beside what could be seen. */
function filled({ zoom, pan }: Sight, bounds: Bounds, frame: Frame): Sight {
  const x = within(pan.x, bounds.left * zoom, bounds.right * zoom, frame.width);
  return { zoom, pan: { x, y: within(pan.y, bounds.top * zoom, bounds.bottom * zoom, frame.height) } };
}

function within(pan: number, first: number, last: number, room: number): number {
  const size = last - first;
  if (size <= room - 2 * MARGIN) return (room - size) / 2 - first;
  return Math.min(MARGIN - first, Math.max(room - MARGIN - first - size, pan));
}

/** The same, if the spot is in it and can be read; else around the spot. */
export function into(sight: Sight, bounds: Bounds, frame: Frame, spot: Spot): Sight {
  const zoom = Math.max(LEAST_ZOOM, sight.zoom);
  const [x, y] = [spot.x * zoom + sight.pan.x, spot.y * zoom + sight.pan.y];
  const [across, down] = [(spot.width * zoom) / 2, (spot.height * zoom) / 2];
  const isSeen = x - across >= 0 && x + across <= frame.width && y - down >= 0 && y + down <= frame.height;
  return zoom === sight.zoom && isSeen ? sight : filled(centred(zoom, spot.x, spot.y, frame), bounds, frame);
}

const centred = (zoom: number, x: number, y: number, frame: Frame): Sight => ({
  zoom,
  pan: { x: frame.width / 2 - x * zoom, y: frame.height / 2 - y * zoom },
});
