import { describe, expect, test } from "vitest";
import { adjacencyOf } from "./adjacency";
import { flow, randomTrace } from "./fixture";

describe("up and down", () => {
  test.each([1, 2, 3, 4, 5])("are symmetrical: x is up of y if and only if y is down of x (seed %i)", (seed) => {
    const { lineage } = randomTrace(seed, { depth: 4, wide: 3, records: 8, fan: 3 });
    const adjacency = adjacencyOf(lineage.flows);
    const hashes = [...lineage.recordsByHash.keys()];
    const pairs = (reach: (hash: string) => ReadonlySet<string>, isReversed: boolean): Set<string> =>
      new Set(hashes.flatMap((x) => [...reach(x)].map((y) => JSON.stringify(isReversed ? [y, x] : [x, y]))));
    expect(pairs(adjacency.descendants, false)).toEqual(pairs(adjacency.ancestors, true));
  });

  test("go through a record: what flows beside it stays dark", () => {
    const adjacency = adjacencyOf([
      flow("a#1#0#0", "a#2#0#0"),
      flow("a#1#0#1", "a#2#0#1"),
      flow("a#2#0#0", "a#3#0#0"),
      flow("a#2#0#1", "a#3#0#0"),
    ]);
    expect(adjacency.connected("a#2#0#0")).toEqual(new Set(["a#2#0#0", "a#1#0#0", "a#3#0#0"]));
    expect(adjacency.ancestors("a#3#0#0").size).toBe(5);
  });

  test("of a record without flows is itself", () => {
    expect(adjacencyOf([]).connected("a#1#0#0")).toEqual(new Set(["a#1#0#0"]));
  });
});
