import { expect, test } from "vitest";
import type { RowVersion } from "../api";
import { stepsOf } from "./changes";

const version = (change: RowVersion["change"], columns: RowVersion["columns"]): RowVersion => ({
  version: 0,
  version_name: "0",
  time: null,
  change,
  operation: "MERGE",
  engine: "",
  path: null,
  row: null,
  line: null,
  columns,
  application_id: null,
  application_name: null,
  node_id: null,
  record_id: null,
  warning: null,
});

/** `name: before > after` of each column, and what is noted. */
const told = (...versions: RowVersion[]) =>
  stepsOf(versions).map(({ columns, note }) => [
    ...columns.map(({ name, was, is }) => `${name}: ${was?.text ?? "-"} > ${is?.text ?? "-"}`),
    ...(note === "" ? [] : [note]),
  ]);

test("a row comes with all columns, changes in some, and goes with all", () => {
  expect(
    told(
      version("inserted", { id: 1, name: "Bob" }),
      version("changed", { id: 1, name: "Bo" }),
      version("rewritten", { id: 1, name: "Bo" }),
      version("deleted", null),
    ),
  ).toEqual([
    ["id: - > 1", "name: - > Bob"],
    ["name: Bob > Bo"],
    ["the same values in another file"],
    ["id: 1 > -", "name: Bo > -"],
  ]);
});

test("columns that come and go, null, and fields of structs are changes", () => {
  expect(
    told(
      version("inserted", { id: 1, place: { city: "Oslo" }, age: 3 }),
      version("changed", { id: 1, place: { city: "Rome" }, name: null }),
      version("changed", { id: 1, place: { city: "Rome" }, name: "null" }),
    ).slice(1),
  ).toEqual([['place: {"city":"Oslo"} > {"city":"Rome"}', "name: - > null", "age: 3 > -"], ["name: null > null"]]);
});

test("what is not known is said", () => {
  expect(
    told(
      version("inserted", null),
      version("changed", { id: 1 }),
      version("rewritten", null),
      version("rewritten", { id: 1 }),
    ),
  ).toEqual([
    ["its values are not known"],
    ["id: - > 1", "what it was before is not known"],
    ["its values are not known"],
    ["id: - > 1", "what it was before is not known"],
  ]);
  expect(told(version("deleted", null))).toEqual([["what it was is not known"]]);
});

test("a row that was deleted and comes again is there with all columns", () => {
  expect(told(version("inserted", { id: 1 }), version("deleted", null), version("inserted", { id: 1 }))).toEqual([
    ["id: - > 1"],
    ["id: 1 > -"],
    ["id: - > 1"],
  ]);
});
