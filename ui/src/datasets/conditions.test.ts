import { describe, expect, test } from "vitest";
import {
  columnName,
  commandLine,
  completed,
  curlLine,
  exampleOf,
  historyLine,
  kindOf,
  namedColumns,
  suggestionsAt,
} from "./conditions";

const columns = [
  { text: "airport", note: "string" },
  { text: "air", note: "double" },
  { text: "day", note: "date" },
  { text: "is_late", note: "boolean" },
];
const at = (condition: string) => suggestionsAt(condition, condition.length, columns).items.map(({ text }) => text);

describe("what may come next in a condition", () => {
  test.each([
    ["", ["airport", "air", "day", "is_late", "not"]],
    ["air", ["airport", "air"]],
    ["DA", ["day"]],
    ["day ", ["=", "!=", "in (", "is null", "is not null", "<", "<=", ">", ">=", "between"]],
    ["airport l", ["like"]],
    ["is_late = ", ["true", "false"]],
    ["day >= ", ["date ''"]],
    ["airport = 'EW", []],
    ["airport = 'EWR' ", ["and", "or"]],
    ["airport = 'EWR' and da", ["day"]],
    ["airport in (", ["''"]],
    ["(", ["airport", "air", "day", "is_late", "not"]],
    ["air is ", ["null", "not null"]],
    ["air is not ", ["null"]],
    ["day between date '2026-01-01' and ", ["date ''"]],
    ["air > 3 ", ["and", "or"]],
  ])("%s", (condition, expected) => {
    expect(at(condition)).toEqual(expected);
  });

  test("replaces the word at the caret, which then stands where one goes on writing", () => {
    const suggestions = suggestionsAt("airp", 4, columns);
    expect(completed("airp", 4, suggestions, "airport")).toEqual({ condition: "airport ", caret: 8 });
    const value = suggestionsAt("airport = ", 10, columns);
    expect(completed("airport = ", 10, value, "''")).toEqual({ condition: "airport = ''", caret: 11 });
  });
});

test("names that are not plain are quoted", () => {
  expect(["wind", "wind speed", 'a"b', "and", "größe"].map(columnName)).toEqual([
    "wind",
    '"wind speed"',
    '"a""b"',
    '"and"',
    "größe",
  ]);
});

test("fields of structs and columns of folders can be named, and a line of text is called value", () => {
  const city = { name: "city", type: "string", nullable: true, fields: [] };
  const place = { name: "place", type: "struct<city:string>", nullable: true, fields: [city] };
  expect(namedColumns([place], ["month"], "parquet").map(({ text }) => text)).toEqual(["place", "place.city", "month"]);
  expect(namedColumns([], [], "text")).toEqual([{ text: "value", note: "string" }]);
  expect(namedColumns([], [], "csv")).toEqual([]);
});

test("types have their kinds and examples", () => {
  expect(["decimal(10,2)", "varchar(3)", "timestamp_ntz", "boolean", "array<int>"].map(kindOf)).toEqual([
    "number",
    "text",
    "time",
    "boolean",
    "other",
  ]);
  expect(exampleOf(columns)).toBe("airport like '%storm%'");
  expect(exampleOf([])).toBe("");
});

test("commands are quoted for a shell", () => {
  expect(commandLine("/data/x y", "a > 1", null, true)).toBe('lineage trace "/data/x y" --where "a > 1" --all');
  expect(commandLine("db.t", "a > 1", "12", false)).toBe('lineage trace db.t --version 12 --where "a > 1"');
  expect(historyLine("db.t", "a > 1", null)).toBe('lineage history db.t --where "a > 1"');
  const curl = 'curl -G localhost:8080/api/trace --data-urlencode dataset=/data/x --data-urlencode "where=a > 1"';
  expect(curlLine("localhost:8080/", "/data/x", "a > 1", null, false)).toBe(curl);
  expect(curlLine("localhost:8080/", "/data/x", "a > 1", "12", false)).toBe(`${curl} -d version=12`);
});
