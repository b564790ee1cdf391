import { describe, expect, test } from "vitest";
import { type Adjacency, adjacencyOf } from "./adjacency";
import { randomTrace, type Shape } from "./fixture";
import { neighbour } from "./navigation";
import { type Picture, pictureOf } from "./picture";
import { type Placement, placementOf, requestOf, type Spot } from "./placement";
import { BETWEEN_LAYERS, PAD, widthOf } from "./size";

const SHAPES: Shape[] = [
  { depth: 2, wide: 3, records: 9, fan: 2 },
  { depth: 12, wide: 4, records: 30, fan: 2 },
  { depth: 2, wide: 30, records: 4, fan: 1 },
  { depth: 90, wide: 2, records: 2, fan: 1 },
];

function placed(seed: number, shape: Shape): { picture: Picture; placement: Placement; adjacency: Adjacency } {
  const { lineage } = randomTrace(seed, shape);
  const adjacency = adjacencyOf(lineage.flows);
  const picture = pictureOf(lineage, adjacency, { more: new Map(), further: new Set(["backward"]) });
  return { picture, placement: placementOf(structuredClone(requestOf(picture))), adjacency };
}

const overlap = (a: Spot, b: Spot): boolean =>
  Math.abs(a.x - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2;

describe.each(SHAPES)("of %j", (shape) => {
  const { picture, placement, adjacency } = placed(4, shape);
  const spot = (name: string): Spot => placement.spots.get(name) as Spot;

  test("nothing lies on anything else", () => {
    const groups = picture.groups.map((group) => spot(group.node.id));
    const others = placement.layers.flat().map(spot);
    for (const all of [groups, others]) {
      all.forEach((a, at) => {
        for (const b of all.slice(at + 1)) expect(overlap(a, b)).toBe(false);
      });
    }
  });

  test("records lie within their operation, and every operation lies right of what it comes from", () => {
    for (const group of picture.groups) {
      const around = spot(group.node.id);
      for (const box of group.boxes) {
        expect(Math.abs(spot(box.hash).x - around.x)).toBeLessThanOrEqual((around.width - spot(box.hash).width) / 2);
        expect(Math.abs(spot(box.hash).y - around.y)).toBeLessThanOrEqual((around.height - spot(box.hash).height) / 2);
      }
    }
    for (const { from, to } of picture.links) expect(spot(from).x).toBeLessThan(spot(to).x);
  });

  test("the arrow keys lead to everything that is drawn", () => {
    const start = picture.groups.find((group) => group.node.side === "centre")?.boxes[0]?.hash as string;
    const visited = new Set([start]);
    for (const name of visited) {
      for (const arrow of ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"] as const) {
        const next = neighbour(placement, adjacency, name, arrow);
        if (next !== null) visited.add(next);
      }
    }
    expect(visited).toEqual(new Set(placement.layers.flat()));
  });
});

test("up and down are each other's inverse, and left leads to what the record came from", () => {
  const { placement, adjacency } = placed(5, { depth: 3, wide: 3, records: 9, fan: 2 });
  for (const layer of placement.layers) {
    for (const name of layer) {
      const down = neighbour(placement, adjacency, name, "ArrowDown");
      if (down !== null) expect(neighbour(placement, adjacency, down, "ArrowUp")).toBe(name);
      const left = neighbour(placement, adjacency, name, "ArrowLeft");
      const drawn = adjacency.inputs(name).filter((other) => placement.spots.has(other));
      if (drawn.length > 0) expect(drawn).toContain(left);
    }
  }
});

test("two operations that a record came from lie one below the other", () => {
  const items = (of: string): string[] => [1, 2, 3, 4, 5].map((number) => `${of} ${number}`);
  const { spots } = placementOf({
    width: 200,
    groups: [
      { id: "upper", layer: -1, number: 0, items: items("upper") },
      { id: "lower", layer: -1, number: 1, items: items("lower") },
      { id: "centre", layer: 0, number: 2, items: ["record"] },
    ],
    joined: [
      ["upper", "centre"],
      ["lower", "centre"],
    ],
    folded: [],
    further: [],
  });
  expect(spots.get("upper")?.x).toBe(spots.get("lower")?.x);
  expect(spots.get("upper")?.y).toBeLessThan(spots.get("lower")?.y as number);
});

test("the fewer layers there are, the wider are records, and a few of them fit a laptop", () => {
  expect(widthOf(2)).toBeGreaterThan(widthOf(3));
  expect(widthOf(3)).toBeGreaterThan(widthOf(5));
  for (const layers of [1, 2, 3, 4]) {
    expect(layers * (widthOf(layers) + 2 * PAD) + (layers - 1) * BETWEEN_LAYERS).toBeLessThanOrEqual(840);
  }
});
