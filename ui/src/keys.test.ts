import { expect, test } from "vitest";
import { countRows } from "./client";
import { targetRow } from "./keys";
import { retryDelay } from "./poll";
import { points, recent } from "./trend";

test("arrows stop at the ends of a table", () => {
  expect(targetRow("ArrowDown", 0, 3)).toBe(1);
  expect(targetRow("ArrowDown", 2, 3)).toBe(2);
  expect(targetRow("ArrowUp", 0, 3)).toBe(0);
  expect(targetRow("End", 0, 3)).toBe(2);
  expect(targetRow("Home", 2, 3)).toBe(0);
  expect(targetRow("a", 0, 3)).toBeNull();
});

test("what fails is asked less and less often, but within a minute", () => {
  expect([0, 1, 2, 10].map((failures) => retryDelay(2000, failures))).toEqual([2000, 4000, 8000, 60_000]);
});

test("rows of CSV are counted across line ends within quotes", () => {
  expect(countRows("")).toBe(0);
  expect(countRows("a,b\r\n")).toBe(1);
  expect(countRows('a,"x\ny"\r\nb,"say ""hi""\n"\r\n')).toBe(2);
  expect(countRows("a\nb")).toBe(2);
});

test("a trend forgets what is old, and ends at the right", () => {
  const looks = [
    { at: 0, value: 1 },
    { at: 1000, value: null },
    { at: 2000, value: 4 },
    { at: 3000, value: 0 },
  ];
  expect(recent(looks, 1500)).toHaveLength(2);
  const line = points(looks, 3000, 100, 40);
  expect(line).toHaveLength(3);
  expect(line.at(-1)).toEqual([100, 38]);
  expect(line[1]?.[1]).toBe(2);
});
