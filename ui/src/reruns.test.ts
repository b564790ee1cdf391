import { expect, test } from "vitest";
import {
  countOf,
  isOutput,
  lineRanges,
  namedReplayLine,
  rangesOf,
  replayLine,
  rowNames,
  rowsLine,
  siftLine,
} from "./reruns";

test("lines count from 1, and ranges name both ends", () => {
  expect(
    lineRanges([
      [3, 1],
      [6, 3],
    ]),
  ).toEqual(["4", "7-9"]);
  expect(
    countOf([
      [3, 1],
      [6, 3],
    ]),
  ).toBe(4);
});

test("rows one by one become ranges that do not touch", () => {
  expect(rangesOf([8, 3, 6, 7, 3])).toEqual([
    [3, 1],
    [6, 3],
  ]);
  expect(rangesOf([])).toEqual([]);
});

test("rows of several files have one name; files without rows have none", () => {
  expect(
    rowNames([
      {
        path: "/a.csv",
        rows: [
          [0, 1],
          [2, 2],
        ],
      },
      { path: "/b", rows: [] },
      { path: "/c", rows: [[9, 1]] },
    ]),
  ).toBe("/a.csv:1,3-4,/c:10");
});

test("the command of the job is the reader's to give", () => {
  expect(replayLine("a", { record: "8#write#0#3" })).toBe('lineage replay a "8#write#0#3" -- YOUR COMMAND');
  expect(replayLine("a", { failure: 2 })).toBe("lineage replay a --failure 2 -- YOUR COMMAND");
  expect(namedReplayLine("a", "without", [{ path: "/my data.csv", rows: [[3, 1]] }])).toBe(
    'lineage replay a --without "/my data.csv:4" -- YOUR COMMAND',
  );
});

test("the fewest rows are looked for by the name of the record or the number of the failure", () => {
  expect(siftLine("a", { record: "write#0#3", node: "8" })).toBe(
    'lineage sift a --wrong "8#write#0#3" -- YOUR COMMAND',
  );
  expect(siftLine("a", { failure: 2 })).toBe("lineage sift a --crash --failure 2 -- YOUR COMMAND");
  expect(siftLine("a", { node: "8", key: "A" })).toBeNull();
});

test("rows are written as files", () => {
  expect(rowsLine("a", { path: "/out/p", row: 1 }, "--extract", "fixture")).toBe(
    "lineage rows a /out/p:2 --extract fixture",
  );
  expect(rowsLine("a", { node: "8", where: "x < 0" }, "--output", "rows.json")).toBe(
    'lineage rows a --where "x < 0" --node 8 --output rows.json',
  );
});

test("only a row of an output can be made again", () => {
  expect(isOutput({ record: "write#0#3" })).toBe(true);
  expect(isOutput({ record: "8#write#0#3" })).toBe(true);
  expect(isOutput({ record: "8#read#0#3" })).toBe(false);
  expect(isOutput({ path: "/out/p", row: 1 })).toBe(false);
});
