import { expect, test } from "vitest";
import { type LayoutRequest, placementOf } from "./placement";
import { sides } from "./extent";

const SIZE = { width: 196, height: 76 };
const ROOM = { width: 1240, height: 420 };

/** So many boxes one behind the other. */
function chain(length: number, parents?: (at: number) => string): LayoutRequest {
  const names = Array.from({ length }, (_, at) => `box ${at}`);
  const boxes = names.map((id, at) => ({ id, ...SIZE, ...(parents === undefined ? {} : { parent: parents(at) }) }));
  const holders = parents === undefined ? [] : [...new Set(names.map((_, at) => parents(at)))];
  const lines = names.slice(1).map((target, at) => ({ id: `line ${at}`, source: names[at] ?? "", target }));
  return { boxes: [...boxes, ...holders.map((id) => ({ id, ...SIZE }))], lines, frame: ROOM };
}

const zoomOf = (request: LayoutRequest) => {
  const { boxes } = placementOf(request);
  const { left, right, top, bottom } = sides(request.boxes, boxes, () => SIZE);
  return Math.min(1, ROOM.width / (right - left), ROOM.height / (bottom - top));
};

test("a long chain can be read where all of it is in sight", () => {
  expect(zoomOf(chain(20))).toBeGreaterThan(0.6);
  expect(zoomOf(chain(20, () => "stage"))).toBeGreaterThan(0.6);
  expect(zoomOf(chain(20, (at) => `stage ${Math.floor(at / 2)}`))).toBeGreaterThan(0.4);
});

test("no two boxes of several rows overlap, and rows read from left to right", () => {
  const request = chain(30);
  const { boxes } = placementOf(request);
  const places = request.boxes.map(({ id }) => boxes[id] ?? { x: 0, y: 0 });
  for (const [at, one] of places.entries()) {
    for (const other of places.slice(at + 1)) {
      expect(Math.abs(one.x - other.x) >= SIZE.width || Math.abs(one.y - other.y) >= SIZE.height).toBe(true);
    }
    const next = places[at + 1];
    if (next !== undefined) expect(next.x > one.x ? next.y === one.y : next.y > one.y).toBe(true);
  }
});

test("what fits stays in one row", () => {
  const { boxes } = placementOf(chain(4));
  expect(new Set(Object.values(boxes).map(({ y }) => y)).size).toBe(1);
});
