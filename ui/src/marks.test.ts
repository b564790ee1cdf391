import { expect, test } from "vitest";
import { markOf, marksIn, marksQuery, startsOf } from "./marks";
import type { Start } from "./route";

const ADDRESS = new URLSearchParams([
  ["bad", "8#write#0#3"],
  ["bad", "/out/part-0:4"],
  ["bad-where", "total < 0"],
  ["good", "8#write#0#1"],
]);

test("marks come out of their address as they went in", () => {
  expect(marksQuery(marksIn(ADDRESS)).toString()).toBe(ADDRESS.toString());
  expect(marksIn(new URLSearchParams({ bad: "", method: "newt" }))).toEqual([]);
});

test("marks of one kind are starts of the API, whose rows count from 0", () => {
  expect(startsOf(marksIn(ADDRESS), "bad")).toBe(
    '[{"record":"8#write#0#3"},{"path":"/out/part-0","row":3},{"where":"total < 0"}]',
  );
  expect(startsOf(marksIn(ADDRESS), "good")).toBe('[{"record":"8#write#0#1"}]');
  expect(startsOf([], "good")).toBeNull();
});

test.each<[Start, string]>([
  [{ path: "/out/part-0", row: 3 }, "/out/part-0:4"],
  [{ node: "8", partition: 0, offset: 3 }, "8#0#3"],
  [{ record: "write#0#3", node: "8" }, "8#write#0#3"],
  [{ record: "write#0#3" }, "write#0#3"],
  [{ record: "8#write#0#3", node: "8" }, "8#write#0#3"],
])("a record is marked by its name: %o", (start, name) => {
  expect(markOf("bad", start)).toEqual({ kind: "bad", name, isCondition: false });
});

test.each<Start>([{ failure: 1 }, { node: "8", key: "A" }, { node: "8", where: "x > 1" }])(
  "what is no one record has no mark: %o",
  (start) => {
    expect(markOf("bad", start)).toBeNull();
  },
);
