import { describe, expect, test } from "vitest";
import { dice } from "./fixture";
import type { Spot } from "./placement";
import { around, type Bounds, into, LEAST_ZOOM, type Sight, whole } from "./viewport";

const FRAME = { width: 900, height: 450 };
const small: Bounds = { left: -200, right: 200, top: 0, bottom: 300 };
const large: Bounds = { left: -2000, right: 2000, top: 0, bottom: 5000 };
const at = (x: number, y: number): Spot => ({ x, y, width: 204, height: 40 });
const seen = ({ zoom, pan }: Sight, x: number, y: number) => [x * zoom + pan.x, y * zoom + pan.y];

test("what is small is seen whole, in the middle, as large as it is", () => {
  expect(whole(small, FRAME).zoom).toBe(1);
  expect(seen(whole(small, FRAME), 0, 150)).toEqual([450, 225]);
  expect(around(small, FRAME, at(0, 280))).toEqual(whole(small, FRAME));
});

test("what is large is seen around the record, so that it can be read", () => {
  const sight = around(large, FRAME, at(300, 2000));
  expect(sight.zoom).toBe(LEAST_ZOOM);
  expect(seen(sight, 300, 2000)).toEqual([450, 225]);
});

test("there is no empty space beside what could be seen", () => {
  const [left = 0, top = 0] = seen(around(large, FRAME, at(-2000, 5000)), -2000, 5000);
  expect(left).toBeCloseTo(14);
  expect(top).toBeCloseTo(450 - 14);
});

describe("a spot that the keys come to", () => {
  test("is in sight and can be read, wherever it is", () => {
    const roll = dice(3);
    let sight = whole(large, FRAME);
    for (let step = 0; step < 200; step += 1) {
      const spot = at(large.left + 4000 * roll(), 5000 * roll());
      sight = into(sight, large, FRAME, spot);
      const [x = -1, y = -1] = seen(sight, spot.x, spot.y);
      expect(x >= 0 && x <= FRAME.width && y >= 0 && y <= FRAME.height).toBe(true);
      expect(sight.zoom).toBeGreaterThanOrEqual(LEAST_ZOOM);
    }
  });

  test("moves nothing where it is seen already", () => {
    const sight = around(large, FRAME, at(0, 2000));
    expect(into(sight, large, FRAME, at(20, 2010))).toBe(sight);
  });
});
