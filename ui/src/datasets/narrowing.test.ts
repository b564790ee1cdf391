import { expect, test } from "vitest";
import type { Choice } from "../api";
import { narrowed } from "./narrowing";

const row = (columns: Choice["columns"]): Choice => ({
  node_id: "a#1",
  record_id: "write#0#0",
  path: "/t/part-0",
  row: 0,
  line: 1,
  columns,
  text: null,
  warning: null,
});

/** The condition of the first of some rows. */
const ofFirst = (where: string, ...columns: Choice["columns"][]): string | null => {
  const [first, ...others] = columns.map(row);
  return first === undefined ? null : narrowed(where, first, [first, ...others]);
};

test("a row alone needs no more", () => {
  expect(ofFirst("a > 1 or b", { a: 2 })).toBe("a > 1 or b");
});

test("one column that tells it from the others is added, a whole number before a text", () => {
  expect(ofFirst("age > 1", { name: "Ada", id: 1 }, { name: "Bob", id: 2 })).toBe("age > 1 and id = 1");
  expect(ofFirst("id = 1 or id = 2", { id: 1, name: "O'Neil" }, { id: 1, name: "Bob" })).toBe(
    "(id = 1 or id = 2) and name = 'O''Neil'",
  );
});

test("several are, where none alone does", () => {
  expect(ofFirst("x", { a: 1, b: 1, c: true }, { a: 1, b: 2, c: true }, { a: 2, b: 1, c: true })).toBe(
    "x and a = 1 and b = 1",
  );
});

test("names are quoted, and null is asked for as such", () => {
  expect(ofFirst("x", { "my day": null }, { "my day": "Monday" })).toBe('x and "my day" is null');
  expect(ofFirst("x", { and: 1e-7 }, { and: 2.5 })).toBe('x and "and" = 1e-7');
});

test("rows that no condition tells apart are not", () => {
  expect(ofFirst("x", { a: 1 }, { a: 1 })).toBeNull();
  expect(ofFirst("x", { a: [1] }, { a: [2] })).toBeNull();
  expect(ofFirst("x", null, { a: 2 })).toBeNull();
});

test("a text of digits is a number or a text, as the type of the column says", () => {
  const rows = [row({ a: "9007199254740993" }), row({ a: "9007199254740995" })];
  const [first] = rows;
  const ofType = (...types: string[]) =>
    first &&
    narrowed(
      "x",
      first,
      rows,
      types.map((type) => ({ name: "a", type, nullable: null, fields: [] })),
    );
  expect(ofType("bigint")).toBe("x and a = 9007199254740993");
  expect(ofType("string")).toBe("x and a = '9007199254740993'");
  expect([ofType("binary"), ofType()]).toEqual([null, null]);
});
