import { describe, expect, test } from "vitest";
import { flow, node, randomTrace, record, trace } from "./fixture";
import { type DirectedTrace, directedTraceOf, lineageOf } from "./model";

describe("layers", () => {
  test.each([11, 12, 13, 14, 15])("lie in the order of the data: every step leads down (seed %i)", (seed) => {
    const { lineage } = randomTrace(seed, { depth: 5, wide: 4, records: 5, fan: 2 });
    const layer = new Map(lineage.nodes.map((traced) => [traced.id, traced.layer]));
    for (const [from, to] of lineage.links) expect(layer.get(from)).toBeLessThan(layer.get(to) as number);
    for (const traced of lineage.nodes) {
      expect(Math.sign(traced.layer)).toBe({ backward: -1, centre: 0, forward: 1 }[traced.side]);
    }
  });

  test("are those of the longest path, so that no step skips back", () => {
    // 1 -> 2 -> 3 and 1 -> 3: the source is two layers above.
    const directed = directedTraceOf(
      trace("backward", [node(3, [record(0, 0)]), node(2, [record(0, 0)]), node(1, [record(0, 0)])], []),
    );
    const edges = [
      { source: "app#1", target: "app#3" },
      { source: "app#1", target: "app#2" },
      { source: "app#2", target: "app#3" },
    ];
    expect(lineageOf([directed], edges).nodes.map((traced) => [traced.number, traced.layer])).toEqual([
      ["1", -2],
      ["2", -1],
      ["3", 0],
    ]);
  });

  test("come from the flows if no graph is loaded, and from the order of the result if no flow is listed", () => {
    const nodes = [node(3, [record(0, 0)]), node(2, [record(0, 4)]), node(1, [record(0, 9)])];
    const withFlows = directedTraceOf(
      trace("backward", nodes, [flow("app#2#0#4", "app#3#0#0"), flow("app#1#0#9", "app#2#0#4")]),
    );
    const withoutFlows = directedTraceOf(trace("backward", nodes, []));
    const layers = (directed: DirectedTrace) =>
      lineageOf([directed], []).nodes.map((traced) => [traced.number, traced.layer]);
    expect(layers(withFlows)).toEqual([
      ["1", -2],
      ["2", -1],
      ["3", 0],
    ]);
    expect(layers(withoutFlows)).toEqual(layers(withFlows));
  });

  test("do not hang on a cycle, which no data can make", () => {
    const nodes = [node(3, [record(0, 0)]), node(2, [record(0, 4)]), node(1, [record(0, 9)])];
    const edges = [
      { source: "app#1", target: "app#2" },
      { source: "app#2", target: "app#1" },
    ];
    expect(lineageOf([directedTraceOf(trace("backward", nodes, []))], edges).nodes).toHaveLength(3);
  });
});

test("operations of other applications keep their own number and application", () => {
  const nodes = [
    node(0, [record(0, 0)]),
    node(4, [record(0, 3)], { node_id: "other#app#4", application_id: "other#app" }),
  ];
  const lineage = lineageOf(
    [
      directedTraceOf(
        trace("backward", nodes, [{ hash_in: "other#app#4#0#3", hash_out: "app#0#0#0", node_id: "app#0" }]),
      ),
    ],
    [],
  );
  expect(lineage.nodes[0]).toMatchObject({ application: "other#app", number: "4", layer: -1 });
  expect(lineage.recordsByHash.get("other#app#4#0#3")?.node.application).toBe("other#app");
});

test("a start of several records is one operation in the middle", () => {
  const records = [record(0, 1), record(1, 1), record(2, 1)];
  const directed = directedTraceOf(trace("backward", [node(5, records, { total: 12 })], [], { start: records }));
  expect(lineageOf([directed], []).centre).toMatchObject({ total: 12, layer: 0 });
  expect(lineageOf([directed], []).centre.records).toHaveLength(3);
});
