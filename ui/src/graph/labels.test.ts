import { expect, test } from "vitest";
import { operation } from "./fixture";
import { labelOf, sizeOf } from "./labels";
import type { DrawnBox } from "./model";

const drawn = (description: string): DrawnBox => ({
  type: "operation",
  id: "app#1",
  group: null,
  passing: null,
  operation: operation(1, { name: "Filter", description, call_site: "/jobs/job.py:12", records: null }),
});

test("a box says what its operation does, and where it stands", () => {
  expect(labelOf(drawn("v > 3"))).toBe("Filter\nv > 3\njob.py:12");
});

test("a long expression is cut, and makes its box no wider", () => {
  const long = drawn("v IS NOT NULL AND (v > 3) AND (other < 17)");
  expect(labelOf(long)).toBe("Filter\nv IS NOT NULL AND (v > 3)…\njob.py:12");
  expect(sizeOf(long)).toEqual(sizeOf(drawn("v > 3")));
});

test("an operation without expressions has no line for them", () => {
  expect(labelOf(drawn("Filter"))).toBe(labelOf(drawn("")));
  expect(sizeOf(drawn("")).height).toBeLessThan(sizeOf(drawn("v > 3")).height);
});
