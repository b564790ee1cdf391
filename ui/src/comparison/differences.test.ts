import { expect, test } from "vitest";
import type { ChangedInput, Comparison } from "../api";
import { differencesOf, placeOf, reasonText } from "./differences";

const input: ChangedInput = { path: "/data/in/orders.csv", row: 2, line: 3, was: "Linz,7", is: "Linz,8" };
const comparison = {
  key: ["city"],
  changed: [
    {
      key: { city: "Linz" },
      was: { total: 7.1234567, city: "Linz" },
      is: { total: 8, city: "Linz" },
      was_record: "a#8#write#0#1",
      is_record: "b#8#write#0#2",
      columns: ["total"],
      because: [input],
      because_note: "",
    },
  ],
  gone: [
    {
      key: { city: "Wels" },
      record: "a#8#write#0#3",
      path: "/data/a/part-0",
      row: 3,
      columns: { total: null, city: "Wels" },
      because: [],
      because_note: "",
    },
  ],
  new: [
    {
      key: { city: "Ried" },
      record: "b#8#write#0#0",
      path: "/data/b/part-0",
      row: 0,
      columns: { total: 2, city: "Ried" },
      because: null,
      because_note: "the time was spent",
    },
  ],
} as unknown as Comparison;

test("a row stands in both columns if it has changed, else in that of its run", () => {
  const rows = differencesOf(comparison);
  expect(rows.map(({ kind, was, is }) => [kind, was?.record ?? null, is?.record ?? null])).toEqual([
    ["changed", "a#8#write#0#1", "b#8#write#0#2"],
    ["gone", "a#8#write#0#3", null],
    ["new", null, "b#8#write#0#0"],
  ]);
});

test("the key comes first, and what differs is marked", () => {
  const [changed] = differencesOf(comparison);
  expect(
    changed?.was?.cells.map(({ name, text, full, isKey, isChanged }) => [name, text, full, isKey, isChanged]),
  ).toEqual([
    ["city", "Linz", null, true, false],
    ["total", "7.12346", "7.1234567", false, true],
  ]);
});

test("without input rows that differ, a sentence says why", () => {
  const [changed, gone, added] = differencesOf(comparison);
  expect(changed && reasonText(changed)).toBe("");
  expect(gone && reasonText(gone)).toBe("the other run has its input rows, too");
  expect(added && reasonText(added)).toBe("the time was spent");
  expect(changed && reasonText({ ...changed, because: [] })).toBe("its input rows are the same in both runs");
  expect(changed && reasonText({ ...changed, because: null })).toBe("its input rows were not looked up");
});

test("an input row is named by its file and line", () => {
  expect(placeOf(input)).toBe("orders.csv:3");
});
