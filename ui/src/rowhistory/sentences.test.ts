import { expect, test } from "vitest";
import type { RowHistory, RowVersion } from "../api";
import { byText, totalText, unknownWriter } from "./sentences";

const version = (fields: Partial<RowVersion> = {}): RowVersion => ({
  version: 3,
  version_name: "3",
  time: null,
  change: "changed",
  operation: "MERGE",
  engine: "delta-rs",
  path: null,
  row: null,
  line: null,
  columns: null,
  application_id: null,
  application_name: null,
  node_id: null,
  record_id: null,
  warning: null,
  ...fields,
});

const history = (fields: Partial<RowHistory>): RowHistory => ({
  dataset: "/t",
  where: null,
  version: 3,
  version_name: "3",
  row_id: null,
  by: "links",
  complete: true,
  versions: [],
  warnings: [],
  ...fields,
});

test("what tells that rows are one row is said", () => {
  expect(byText(history({ by: "row_id", row_id: 0 }))).toMatch(/^Row 0 of the table, which keeps ids of rows/);
  expect(byText(history({}))).toMatch(/^Followed by what was captured/);
});

test("the last version is named", () => {
  expect(totalText(history({ versions: [version(), version({ change: "deleted", version_name: "7" })] }))).toBe(
    "2 versions. The last one, version 7, deleted it",
  );
  expect(totalText(history({}))).toBe("No version is known that inserted, changed or deleted it");
});

test("a writer that is not known is said to be so; who deletes writes no file", () => {
  expect(unknownWriter(version({ application_id: "a" }))).toBe("");
  expect(unknownWriter(version())).toBe("delta-rs: no application is known that wrote its file");
  expect(unknownWriter(version({ engine: "" }))).toBe("no application is known that wrote its file");
  expect(unknownWriter(version({ change: "deleted" }))).toBe("delta-rs");
  expect(unknownWriter(version({ change: "deleted", engine: "" }))).toBe("not known");
});
