import { describe, expect, test } from "vitest";
import type { Column } from "../api";
import { failures, flatColumns, folderOf, shortName, stateColour, stateOf } from "./texts";

const column = (name: string, type: string, fields: Column[] = []): Column => ({ name, type, nullable: true, fields });

describe("the name of a dataset", () => {
  test.each([
    ["/data/monthly", "monthly", "/data/"],
    ["/data/monthly/", "monthly", "/data/"],
    ["s3://bucket/out/day", "day", "s3://bucket/out/"],
    ["kafka://broker:9092/orders", "orders", "kafka://broker:9092/"],
    ["orders", "orders", ""],
  ])("%s is %s in %s", (path, short, folder) => {
    expect(shortName({ path, name: path })).toBe(short);
    expect(folderOf({ path })).toBe(folder);
  });
});

test("failed and lost runs have a colour, others none", () => {
  const states = ["running", "complete", "failed", "aborted", "lost"] as const;
  expect(states.map((state) => stateColour({ state }))).toEqual([null, null, "is-failed", "warning", "is-lost"]);
  expect(states.map((state) => stateOf({ state }))).toEqual(["running", "written", "failed", "cancelled", "lost"]);
  expect(stateOf({ state: "complete", kind: "read" })).toBe("read");
});

test("failed runs are counted among all, and nothing is said where none failed", () => {
  expect(failures({ runs: 5, failed_runs: 2 })).toBe("2 of 5");
  expect(failures({ runs: 5, failed_runs: 0 })).toBe("");
});

test("fields of structs follow their struct, with their whole names", () => {
  const columns = [
    column("id", "bigint"),
    column("place", "struct", [column("city", "string"), column("at", "struct", [column("x", "double")])]),
  ];
  expect(flatColumns(columns).map(({ path, depth }) => [path, depth])).toEqual([
    ["id", 0],
    ["place", 0],
    ["place.city", 1],
    ["place.at", 1],
    ["place.at.x", 2],
  ]);
});
