import { expect, test } from "vitest";
import { columnNames, columnsOf, isShortened, shownValue } from "./values";

test("fractions are rounded for reading, and nothing else is changed", () => {
  expect(shownValue(57.81349206349206)).toMatchObject({ text: "57.8135", full: "57.81349206349206" });
  expect(shownValue(1234567.891)).toMatchObject({ text: "1234567.89", full: "1234567.891" });
  expect(shownValue(0.000012345678)).toMatchObject({ text: "0.0000123457" });
  expect(shownValue(0.5)).toMatchObject({ text: "0.5", full: null });
  expect(shownValue(1234567)).toMatchObject({ text: "1234567", full: null });
  expect(shownValue("9007199254740993")).toMatchObject({ text: "9007199254740993", full: null });
  expect(shownValue(null)).toMatchObject({ text: "null", isNull: true });
  expect(shownValue([1, { a: 2 }])).toMatchObject({ text: '[1,{"a":2}]' });
});

test("a long text is cut, and all of it is there", () => {
  const { text, full } = shownValue("x".repeat(500));
  expect([text.length, text.at(-1), full?.length]).toEqual([160, "…", 500]);
  expect(isShortened([{ a: 1 }, null, { a: 1 / 3 }])).toBe(true);
  expect(isShortened([{ a: 1, b: "text" }, undefined])).toBe(false);
});

test("columns are those of any row, with their types", () => {
  const schema = [
    { name: "a", type: "decimal(10,2)", nullable: true, fields: [] },
    { name: "b", type: "string", nullable: true, fields: [] },
  ];
  expect(columnsOf([{ a: "1.50", b: "x" }, null, { c: 1, a: null }, { d: null }], schema)).toEqual([
    { name: "a", type: "decimal(10,2)", isNumber: true },
    { name: "b", type: "string", isNumber: false },
    { name: "c", type: "", isNumber: true },
    { name: "d", type: "", isNumber: false },
  ]);
});

test("names with commas and quotes stand in quotes", () => {
  expect(columnNames(["a", "b,c", 'd"e', " f"])).toBe('a,"b,c","d""e"," f"');
});
