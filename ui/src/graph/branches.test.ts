import { describe, expect, test } from "vitest";
import type { Graph } from "../api";
import { foldBranches } from "./branches";
import { graphOf, randomGraph } from "./fixture";

/** `graphOf` with these names in place of one for each operation. */
const named = (edges: string, names: string[], descriptions: string[] = []): Graph => {
  const graph = graphOf(edges);
  const nodes = graph.nodes.map((node, at) => ({
    ...node,
    name: names[at] ?? "",
    description: descriptions[at] ?? "",
    call_site: "job.py:1",
  }));
  return { ...graph, nodes };
};

const numbers = (graph: Graph) => graph.nodes.map(({ node }) => node);

describe("three branches from one source to one union", () => {
  const names = ["scan", "filter", "filter", "filter", "map", "map", "map", "union"];
  const graph = named("0 1, 0 2, 0 3, 1 4, 2 5, 3 6, 4 7, 5 7, 6 7", names, ["", "m = 1", "m = 2", "m = 3"]);

  test("are one branch, with all records and flows", () => {
    const folded = foldBranches(graph);
    expect(numbers(folded.graph)).toEqual([0, 1, 4, 7]);
    expect(folded.graph.nodes[1]?.records).toBe(1 + 2 + 3);
    expect(folded.graph.edges.map(({ flows }) => flows)).toEqual([3, 3, 3]);
    expect(folded.alike.get("app#4")?.map(({ node }) => node)).toEqual([4, 5, 6]);
  });

  test("say what their expressions have in common", () => {
    expect(foldBranches(graph).graph.nodes[1]?.description).toBe("m = …");
  });

  test("stay apart where one goes on differently", () => {
    const other = {
      ...graph,
      nodes: graph.nodes.map((node) => (node.node === 6 ? { ...node, name: "flatMap" } : node)),
    };
    expect(foldBranches(other).graph.nodes).toHaveLength(8);
  });

  test("stay apart where one failed", () => {
    const failed = graph.nodes.map((node) => (node.node === 6 ? { ...node, state: "failed" as const } : node));
    expect(foldBranches({ ...graph, nodes: failed }).graph.nodes).toHaveLength(8);
  });
});

test("the two sides of a join and operations one after the other stay apart", () => {
  expect(numbers(foldBranches(named("0 1, 2 3, 1 4, 3 4", ["scan", "map", "scan", "map", "join"])).graph)).toHaveLength(
    5,
  );
  expect(numbers(foldBranches(named("0 1, 1 2, 2 3", ["map", "map", "map", "map"])).graph)).toHaveLength(4);
});

test("nothing is lost: every operation is drawn or stands behind one that is", () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    const graph = randomGraph(seed, 40, 0.3);
    const plain = { ...graph, nodes: graph.nodes.map((node) => ({ ...node, name: `n${node.node % 2}` })) };
    const { graph: smaller, alike } = foldBranches(plain);
    const all = smaller.nodes.flatMap((node) => alike.get(node.node_id) ?? [node]);
    expect(all.map(({ node }) => node).sort((one, other) => one - other)).toEqual(numbers(graph));
    const flows = (of: Graph) => of.edges.reduce((sum, edge) => sum + (edge.flows ?? 0), 0);
    expect(flows(smaller)).toBe(flows(plain));
  }
});
