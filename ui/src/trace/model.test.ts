import { describe, expect, test } from "vitest";
import { flow, madeUp, node, record, trace } from "./fixture";
import { type Leg, legOf, wayOf } from "./model";

describe("layers", () => {
  test.each([11, 12, 13, 14, 15])("lie in the order of the data: every step leads down (seed %i)", (seed) => {
    const { way } = madeUp(seed, { depth: 5, wide: 4, records: 5, fan: 2 });
    const layer = new Map(way.nodes.map((each) => [each.id, each.layer]));
    for (const [from, to] of way.steps) expect(layer.get(from)).toBeLessThan(layer.get(to) as number);
    for (const each of way.nodes) {
      expect(Math.sign(each.layer)).toBe({ backward: -1, centre: 0, forward: 1 }[each.side]);
    }
  });

  test("are those of the longest path, so that no step skips back", () => {
    // 1 -> 2 -> 3 and 1 -> 3: the source stands two above.
    const leg = legOf(
      trace("backward", [node(3, [record(0, 0)]), node(2, [record(0, 0)]), node(1, [record(0, 0)])], []),
    );
    const edges = [
      { source: "app#1", target: "app#3" },
      { source: "app#1", target: "app#2" },
      { source: "app#2", target: "app#3" },
    ];
    expect(wayOf([leg], edges).nodes.map((each) => [each.number, each.layer])).toEqual([
      ["1", -2],
      ["2", -1],
      ["3", 0],
    ]);
  });

  test("come from the flows where no graph is known, and from the order of the answer where no flow is listed", () => {
    const nodes = [node(3, [record(0, 0)]), node(2, [record(0, 4)]), node(1, [record(0, 9)])];
    const told = legOf(trace("backward", nodes, [flow("app#2#0#4", "app#3#0#0"), flow("app#1#0#9", "app#2#0#4")]));
    const untold = legOf(trace("backward", nodes, []));
    const layers = (leg: Leg) => wayOf([leg], []).nodes.map((each) => [each.number, each.layer]);
    expect(layers(told)).toEqual([
      ["1", -2],
      ["2", -1],
      ["3", 0],
    ]);
    expect(layers(untold)).toEqual(layers(told));
  });

  test("do not hang on a cycle, which no data can make", () => {
    const nodes = [node(3, [record(0, 0)]), node(2, [record(0, 4)]), node(1, [record(0, 9)])];
    const edges = [
      { source: "app#1", target: "app#2" },
      { source: "app#2", target: "app#1" },
    ];
    expect(wayOf([legOf(trace("backward", nodes, []))], edges).nodes).toHaveLength(3);
  });
});

test("operations of other applications keep their own number and application", () => {
  const nodes = [node(0, [record(0, 0)]), { ...node(4, [record(0, 3)]), node_id: "other#app#4" }];
  const way = wayOf(
    [legOf(trace("backward", nodes, [{ hash_in: "other#app#4#0#3", hash_out: "app#0#0#0", node_id: "app#0" }]))],
    [],
  );
  expect(way.nodes[0]).toMatchObject({ application: "other#app", number: "4", layer: -1 });
  expect(way.places.get("other#app#4#0#3")?.node.application).toBe("other#app");
});

test("a start of several records is one operation in the middle", () => {
  const records = [record(0, 1), record(1, 1), record(2, 1)];
  const leg = legOf(trace("backward", [node(5, records, { total: 12 })], [], { start: records }));
  expect(wayOf([leg], []).centre).toMatchObject({ total: 12, layer: 0 });
  expect(wayOf([leg], []).centre.records).toHaveLength(3);
});
