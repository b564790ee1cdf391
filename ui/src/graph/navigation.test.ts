import { expect, test } from "vitest";
import { segments } from "./bends";
import { graphOf, randomGraph } from "./fixture";
import { layoutRequestOf } from "./labels";
import { groupsOf, initiallyOpen, pictureOf } from "./model";
import { neighbour, topmost, turned, turnedPlaces } from "./navigation";
import { placementOf } from "./placement";

const places = { a: { x: 0, y: 0 }, b: { x: -50, y: 100 }, c: { x: 60, y: 100 }, d: { x: 0, y: 200 } };
const lines = [
  { source: "a", target: "b" },
  { source: "a", target: "c" },
  { source: "b", target: "d" },
  { source: "c", target: "d" },
];

test("arrows follow lines up and down and rows left and right", () => {
  expect(neighbour(places, lines, "a", "ArrowDown")).toBe("b");
  expect(neighbour(places, lines, "b", "ArrowRight")).toBe("c");
  expect(neighbour(places, lines, "c", "ArrowLeft")).toBe("b");
  expect(neighbour(places, lines, "c", "ArrowDown")).toBe("d");
  expect(neighbour(places, lines, "d", "ArrowUp")).toBe("b");
  expect(neighbour(places, lines, "a", "ArrowUp")).toBeNull();
  expect(neighbour(places, lines, "nowhere", "ArrowUp")).toBeNull();
  expect(topmost(places)).toBe("a");
  expect(topmost({})).toBeNull();
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

test("a layout puts what is read above what reads it, and boxes beside each other", () => {
  const graph = graphOf("0 1, 1 = 2, 3 = 2, 2 4");
  const all = groupsOf(graph);
  const request = layoutRequestOf(pictureOf(graph, all, initiallyOpen(all, graph)));
  const placed = placementOf(request);
  for (const { source, target } of request.lines) {
    expect(placed.boxes[source]?.y).toBeLessThan(placed.boxes[target]?.y ?? Number.NaN);
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

test("a drawing from left to right is walked as one from the top down, turned", () => {
  const across = turnedPlaces(places); // b and c are right of a, d is right of both
  expect(across.d).toEqual({ x: 200, y: 0 });
  const step = (from: string, arrow: Parameters<typeof turned>[0]) =>
    neighbour(turnedPlaces(across), lines, from, turned(arrow));
  expect(step("a", "ArrowRight")).toBe("b");
  expect(step("b", "ArrowDown")).toBe("c");
  expect(step("c", "ArrowUp")).toBe("b");
  expect(step("d", "ArrowLeft")).toBe("b");
  expect(step("a", "ArrowLeft")).toBeNull();
});
