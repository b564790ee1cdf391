import { expect, test } from "vitest";
import { operation } from "./fixture";
import { labelOf, sizeOf } from "./labels";
import type { DrawnBox } from "./model";

const boxOf = (description: string): DrawnBox => ({
  type: "operation",
  id: "app#1",
  group: null,
  alike: 1,
  passedRows: null,
  operation: operation(1, { name: "Filter", description, call_site: "/jobs/job.py:12", records: null }),
});

test("a box says what its operation does, and its call site", () => {
  expect(labelOf(boxOf("v > 3"))).toBe("Filter\nv > 3\njob.py:12");
});

test("a long expression is cut, and makes its box no wider", () => {
  const long = boxOf("v IS NOT NULL AND (v > 3) AND (other < 17)");
  expect(labelOf(long)).toBe("Filter\nv IS NOT NULL AND (v > 3)…\njob.py:12");
  expect(sizeOf(long)).toEqual(sizeOf(boxOf("v > 3")));
});

test("an operation without expressions has no line for them", () => {
  expect(labelOf(boxOf("Filter"))).toBe(labelOf(boxOf("")));
  expect(sizeOf(boxOf("")).height).toBeLessThan(sizeOf(boxOf("v > 3")).height);
});
