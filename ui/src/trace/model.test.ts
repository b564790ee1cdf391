import { describe, expect, test } from "vitest";
import { dice, flow, madeUp, node, record, trace } from "./fixture";
import { type Leg, legOf, merged, unlisted, wayOf } from "./model";

const ids = (leg: Leg): string[] =>
  leg.nodes.flatMap((each) => each.records.map((one) => `${each.node_id}#${one.record_id}`));

/** The leg as pages of `size` records of each operation. */
function pagesOf(leg: Leg, size: number): Leg[] {
  const most = Math.max(...leg.nodes.map((each) => each.records.length));
  return Array.from({ length: Math.ceil(most / size) }, (_, page) => {
    const nodes = leg.nodes.map((each) => ({ ...each, records: each.records.slice(page * size, (page + 1) * size) }));
    const listed = new Set(nodes.flatMap((each) => each.records.map((one) => `${each.node_id}#${one.record_id}`)));
    return { ...leg, nodes, flows: leg.flows.filter((each) => listed.has(each.hash_in) && listed.has(each.hash_out)) };
  });
}

describe("pages of a trace", () => {
  test.each([1, 2, 3, 4, 5, 6])("make up the whole in any order, and none counts twice (seed %i)", (seed) => {
    const roll = dice(seed);
    const { legs } = madeUp(seed, { depth: 3, wide: 3, records: 20, fan: 3 });
    for (const leg of legs) {
      const pages = pagesOf(leg, 1 + Math.floor(roll() * 6));
      const inOrder = pages.reduce(merged);
      const shuffled = [...pages, ...pages].sort(() => roll() - 0.5).reduce(merged);
      expect(ids(inOrder)).toEqual(ids(leg));
      expect(ids(shuffled)).toEqual(ids(leg));
      expect(shuffled.nodes.map((each) => each.total)).toEqual(leg.nodes.map((each) => each.total));
      expect(unlisted(inOrder)).toBe(unlisted(leg));
      expect(new Set(shuffled.flows.map((each) => JSON.stringify(each)))).toEqual(
        new Set(inOrder.flows.map((each) => JSON.stringify(each))),
      );
    }
  });

  test("keep what one of them lacks: it is incomplete, inexact, not all", () => {
    const page = legOf(trace("backward", [node(3, [record(0, 0)])], []));
    const worse = legOf(trace("backward", [node(3, [record(0, 0)])], [], { complete: false, exact: false }));
    expect(merged(page, worse)).toMatchObject({ complete: false, exact: false });
    expect(merged(worse, page)).toMatchObject({ complete: false, exact: false });
    expect(merged({ ...page, isSoFar: true }, page).isSoFar).toBe(false);
  });

  test("know operations that a later page found first", () => {
    const some = legOf(trace("backward", [node(3, [record(0, 0)])], []));
    const all = legOf(trace("backward", [node(3, [record(0, 0)]), node(2, [record(0, 5)])], []));
    expect(merged(some, all).nodes.map((each) => each.node_id)).toEqual(["app#3", "app#2"]);
    expect(merged(all, some).nodes.map((each) => each.node_id)).toEqual(["app#3", "app#2"]);
  });
});

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
