import { describe, expect, test } from "vitest";
import type { Graph } from "../api";
import { graphOf, randomGraph } from "./fixture";
import { depths, groupsOf, initiallyOpen, LIMIT, type Picture, pictureOf, stagesOf } from "./model";

const numbers = (graph: Graph) => stagesOf(graph).map(({ members }) => members.map(({ node }) => node));

/** Whether following the lines one may come back to a box. */
function hasCycle({ boxes, lines }: Picture): boolean {
  const left = new Map(boxes.map(({ id }) => [id, lines.filter(({ target }) => target === id).length]));
  const ready = [...left].filter(([, count]) => count === 0).map(([id]) => id);
  let done = 0;
  for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
    done += 1;
    for (const { source, target } of lines) {
      if (source !== id) continue;
      const count = (left.get(target) ?? 0) - 1;
      left.set(target, count);
      if (count === 0) ready.push(target);
    }
  }
  return done < boxes.length;
}

describe("stages", () => {
  test("end at shuffles", () => {
    expect(numbers(graphOf("0 1, 1 = 2, 2 3, 3 = 4"))).toEqual([[0, 1], [2, 3], [4]]);
  });

  test("of two sources are two until a shuffle brings them together", () => {
    expect(numbers(graphOf("0 1, 2 3, 1 = 4, 3 = 4, 4 5"))).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
  });

  test("follow the longest path: what is read again without a shuffle stays above", () => {
    const graph = graphOf("0 1, 0 = 2, 1 3, 2 3");
    expect(depths(graph)).toEqual(
      new Map([
        ["app#0", 0],
        ["app#1", 0],
        ["app#2", 1],
        ["app#3", 1],
      ]),
    );
    expect(numbers(graph)).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  test("are one where no shuffle is known", () => {
    expect(numbers(graphOf("0 1, 1 2"))).toEqual([[0, 1, 2]]);
  });

  test("leave out edges to operations that are not there", () => {
    const graph = graphOf("0 1");
    graph.edges.push({ source: "other#1", target: "app#1", flows: 1, shuffle: false });
    expect(numbers(graph)).toEqual([[0, 1]]);
  });
});

describe("a picture", () => {
  test("with all stages open has every operation and every edge", () => {
    const graph = graphOf("0 1, 1 = 2, 2 3");
    const all = groupsOf(graph);
    const result = pictureOf(graph, all, initiallyOpen(all, graph));
    expect(result.boxes.filter(({ type }) => type === "operation")).toHaveLength(4);
    expect(result.boxes.filter(({ type }) => type === "group")).toHaveLength(2);
    expect(result.lines.map(({ source, target, isShuffle }) => [source, target, isShuffle])).toEqual([
      ["app#0", "app#1", false],
      ["app#1", "app#2", true],
      ["app#2", "app#3", false],
    ]);
  });

  test("with a closed stage adds its flows up", () => {
    const graph = graphOf("0 1, 0 = 2, 1 = 3, 2 3");
    const all = groupsOf(graph);
    const result = pictureOf(graph, all, []);
    expect(result.lines).toEqual([
      { id: "group 0 > group 2", source: "group 0", target: "group 2", flows: 2, edges: 2, isShuffle: true },
    ]);
  });

  test("does not say zero where nothing was counted", () => {
    const graph = graphOf("0 = 1");
    for (const edge of graph.edges) edge.flows = null;
    expect(pictureOf(graph, groupsOf(graph), []).lines[0]?.flows).toBeNull();
  });

  test.each(
    Array.from(
      { length: 24 },
      (_, seed) => [seed, [30, 500, 1500, 4000][seed % 4] ?? 0, [0, 0.05, 0.4, 1][(seed >> 2) % 4] ?? 0] as const,
    ),
  )(
    "is never too large, loses no operation and no flow, and has no cycle (seed %i, %i operations)",
    (seed, size, shuffles) => {
      const graph = randomGraph(seed, size, shuffles);
      const all = groupsOf(graph);
      expect(all.flatMap(({ members }) => members.map(({ node }) => node)).sort((a, b) => a - b)).toEqual(
        graph.nodes.map(({ node }) => node),
      );
      expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
      for (const open of [initiallyOpen(all, graph), [], all.map(({ id }) => id), all.slice(-3).map(({ id }) => id)]) {
        const result = pictureOf(graph, all, open);
        expect(result.boxes.length + result.lines.length).toBeLessThanOrEqual(LIMIT);
        expect([...result.closed, ...result.open].sort()).toEqual([...open].sort());
        const ids = new Set(result.boxes.map(({ id }) => id));
        for (const { source, target } of result.lines) expect(ids.has(source) && ids.has(target)).toBe(true);
        expect(hasCycle(result)).toBe(false);
        if (open.length > 0) expect(result.open.at(-1) ?? open.at(-1)).toBe(open.at(-1));
        const within = graph.edges.filter(
          ({ source, target }) => !result.boxes.some(({ id }) => id === source || id === target),
        );
        expect(result.lines.reduce((sum, { edges }) => sum + edges, 0) + within.length).toBeGreaterThan(0);
      }
    },
  );

  test("closes what was opened first where all would be too much", () => {
    const graph = randomGraph(5, 500, 0.1);
    const all = groupsOf(graph);
    const result = pictureOf(
      graph,
      all,
      all.map(({ id }) => id),
    );
    expect(result.closed.length).toBeGreaterThan(0);
    expect(result.closed).toEqual(all.slice(0, result.closed.length).map(({ id }) => id));
  });
});
