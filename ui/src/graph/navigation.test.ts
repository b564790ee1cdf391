import { expect, test } from "vitest";
import { segments } from "./bends";
import { graphOf, randomGraph } from "./fixture";
import { layoutRequestOf } from "./labels";
import { groupsOf, initiallyOpen, pictureOf } from "./model";
import { leftmost, neighbour } from "./navigation";
import { placementOf } from "./placement";

const places = { a: { x: 0, y: 0 }, b: { x: 250, y: -50 }, c: { x: 250, y: 60 }, d: { x: 500, y: 0 } };
const lines = [
  { source: "a", target: "b" },
  { source: "a", target: "c" },
  { source: "b", target: "d" },
  { source: "c", target: "d" },
];

test("arrows follow lines left and right and columns up and down", () => {
  expect(neighbour(places, lines, "a", "ArrowRight")).toBe("b");
  expect(neighbour(places, lines, "b", "ArrowDown")).toBe("c");
  expect(neighbour(places, lines, "c", "ArrowUp")).toBe("b");
  expect(neighbour(places, lines, "c", "ArrowRight")).toBe("d");
  expect(neighbour(places, lines, "d", "ArrowLeft")).toBe("b");
  expect(neighbour(places, lines, "a", "ArrowLeft")).toBeNull();
  expect(neighbour(places, lines, "nowhere", "ArrowLeft")).toBeNull();
  expect(leftmost(places)).toBe("a");
  expect(leftmost({})).toBeNull();
});

test("bends are measured along and beside the straight line", () => {
  const { weights, distances } = segments({ x: 0, y: 0 }, { x: 0, y: 100 }, [
    { x: 10, y: 25 },
    { x: -10, y: 75 },
  ]);
  expect(weights).toEqual([0.25, 0.75]);
  expect(distances).toEqual([-10, 10]);
  expect(segments({ x: 1, y: 1 }, { x: 1, y: 1 }, [{ x: 2, y: 2 }])).toEqual({ weights: [], distances: [] });
});

test("a layout puts what is read left of what reads it, and boxes beside each other", () => {
  const graph = graphOf("0 1, 1 = 2, 3 = 2, 2 4");
  const all = groupsOf(graph);
  const request = layoutRequestOf(pictureOf(graph, all, initiallyOpen(all, graph)));
  const placed = placementOf(request);
  for (const { source, target } of request.lines) {
    expect(placed.boxes[source]?.x).toBeLessThan(placed.boxes[target]?.x ?? Number.NaN);
  }
  const drawn = request.boxes.filter(({ id }) => id.startsWith("app#"));
  for (const one of drawn) {
    for (const other of drawn) {
      if (one.id >= other.id) continue;
      const [p, q] = [placed.boxes[one.id], placed.boxes[other.id]];
      const isApart =
        Math.abs((p?.x ?? 0) - (q?.x ?? 0)) >= one.width ||
        Math.abs((p?.y ?? 0) - (q?.y ?? 0)) >= one.height / 2 + other.height / 2;
      expect(isApart).toBe(true);
    }
  }
});

test("as much as may be drawn is laid out in a few seconds", () => {
  const graph = randomGraph(1, 240, 0.2);
  const all = groupsOf(graph);
  const placed = placementOf(
    layoutRequestOf(
      pictureOf(
        graph,
        all,
        all.map(({ id }) => id),
      ),
    ),
  );
  for (const { x, y } of Object.values(placed.boxes)) expect(Number.isFinite(x) && Number.isFinite(y)).toBe(true);
});

test("in a wide frame all lines lead right; in a narrow one those within a stage lead down", () => {
  const graph = graphOf("0 1, 1 2, 2 = 3, 3 4, 4 5");
  const all = groupsOf(graph);
  const picture = pictureOf(graph, all, initiallyOpen(all, graph));
  const at = (width: number, height: number) => {
    const { boxes } = placementOf(layoutRequestOf(picture, { width, height }));
    return (id: string) => boxes[`app#${id}`] ?? { x: Number.NaN, y: Number.NaN };
  };
  const wide = at(2000, 300);
  expect(wide("1").x).toBeGreaterThan(wide("0").x + 100);
  const narrow = at(700, 500);
  expect(narrow("1").x).toBe(narrow("0").x);
  expect(narrow("1").y).toBeGreaterThan(narrow("0").y);
  expect(narrow("3").x).toBeGreaterThan(narrow("2").x + 100);
});
