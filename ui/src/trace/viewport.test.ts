import { describe, expect, test } from "vitest";
import { dice } from "./fixture";
import type { Spot } from "./placement";
import { type Bounds, fitAll, MIN_READABLE_ZOOM, reveal, type Viewport } from "./viewport";

const FRAME = { width: 900, height: 450 };
const small: Bounds = { left: -200, right: 200, top: 0, bottom: 300 };
const large: Bounds = { left: -2000, right: 2000, top: 0, bottom: 5000 };
const spotAt = (x: number, y: number): Spot => ({ x, y, width: 204, height: 40 });
const positionOf = ({ zoom, pan }: Viewport, x: number, y: number) => [x * zoom + pan.x, y * zoom + pan.y];

test("what is small is seen whole, in the middle, as large as it is", () => {
  expect(fitAll(small, FRAME).zoom).toBe(1);
  expect(positionOf(fitAll(small, FRAME), 0, 150)).toEqual([450, 225]);
});

test("what is large is seen whole as well", () => {
  const viewport = fitAll(large, FRAME);
  for (const [x, y] of [
    [large.left, large.top],
    [large.right, large.bottom],
  ] as const) {
    const [left = -1, top = -1] = positionOf(viewport, x, y);
    expect(left >= 0 && left <= FRAME.width && top >= 0 && top <= FRAME.height).toBe(true);
  }
});

test("there is no empty space beside what the keys come to", () => {
  const [left = 0, top = 0] = positionOf(reveal(fitAll(large, FRAME), large, FRAME, spotAt(-2000, 5000)), -2000, 5000);
  expect(left).toBeCloseTo(14);
  expect(top).toBeCloseTo(450 - 14);
});

describe("a spot that the keys come to", () => {
  test("is in sight and can be read, wherever it is", () => {
    const random = dice(3);
    let viewport = fitAll(large, FRAME);
    for (let step = 0; step < 200; step += 1) {
      const spot = spotAt(large.left + 4000 * random(), 5000 * random());
      viewport = reveal(viewport, large, FRAME, spot);
      const [x = -1, y = -1] = positionOf(viewport, spot.x, spot.y);
      expect(x >= 0 && x <= FRAME.width && y >= 0 && y <= FRAME.height).toBe(true);
      expect(viewport.zoom).toBeGreaterThanOrEqual(MIN_READABLE_ZOOM);
    }
  });

  test("moves nothing where it is seen already", () => {
    const viewport = reveal(fitAll(large, FRAME), large, FRAME, spotAt(0, 2000));
    expect(reveal(viewport, large, FRAME, spotAt(20, 2010))).toBe(viewport);
  });
});
