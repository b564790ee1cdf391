import { describe, expect, test } from "vitest";
import { graphOf } from "./graph/fixture";
import { neighbours, passedRows } from "./passthrough";

/** 0 and 1 are scans, 2 a filter and 3 a join that rows pass, 4 and 5 outputs. */
function plan() {
  const graph = graphOf("0 2, 2 3, 1 3, 3 = 4, 3 5");
  for (const node of [2, 3]) graph.nodes[node] = { ...graph.nodes[node]!, records: null };
  const flows = [60, null, 8, 12, 11];
  graph.edges.forEach((edge, at) => {
    edge.flows = flows[at] ?? null;
  });
  return graph;
}

describe("operations that rows only pass", () => {
  test("tell how many went on, where that is counted", () => {
    expect(passedRows(plan())).toEqual(new Map([["app#3", 12]]));
  });

  test("lead to where the rows begin and end", () => {
    const numbers = (id: string) => {
      const { before, after } = neighbours(plan(), id);
      return [before.map(({ node }) => node), after.map(({ node }) => node)];
    };
    expect(numbers("app#3")).toEqual([
      [0, 1],
      [4, 5],
    ]);
    expect(numbers("app#2")).toEqual([[0], [4, 5]]);
  });
});
