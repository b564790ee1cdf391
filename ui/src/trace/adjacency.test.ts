import { describe, expect, test } from "vitest";
import { flow, madeUp } from "./fixture";
import { waysOf } from "./adjacency";

describe("up and down", () => {
  test.each([1, 2, 3, 4, 5])("are symmetrical: x is up of y if and only if y is down of x (seed %i)", (seed) => {
    const { way } = madeUp(seed, { depth: 4, wide: 3, records: 8, fan: 3 });
    const ways = waysOf(way.flows);
    const every = [...way.places.keys()];
    const pairs = (reach: (hash: string) => ReadonlySet<string>, turn: boolean): Set<string> =>
      new Set(every.flatMap((x) => [...reach(x)].map((y) => JSON.stringify(turn ? [y, x] : [x, y]))));
    expect(pairs(ways.down, false)).toEqual(pairs(ways.up, true));
  });

  test("go through a record: what flows beside it stays dark", () => {
    const ways = waysOf([
      flow("a#1#0#0", "a#2#0#0"),
      flow("a#1#0#1", "a#2#0#1"),
      flow("a#2#0#0", "a#3#0#0"),
      flow("a#2#0#1", "a#3#0#0"),
    ]);
    expect(ways.through("a#2#0#0")).toEqual(new Set(["a#2#0#0", "a#1#0#0", "a#3#0#0"]));
    expect(ways.up("a#3#0#0").size).toBe(5);
  });

  test("of a record without flows is itself", () => {
    expect(waysOf([]).through("a#1#0#0")).toEqual(new Set(["a#1#0#0"]));
  });
});
