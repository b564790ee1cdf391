import { expect, test } from "vitest";
import type { ReplayStep, StepRecord } from "../api";
import { recordPlace, recordText, rowsOfSteps, stepText } from "./steps";

const record = (more: Partial<StepRecord> = {}): StepRecord => ({
  record_id: "0#0",
  key: null,
  value: "x",
  value_type: "str",
  path: null,
  line: null,
  made_of: [],
  ...more,
});

const step = (more: Partial<ReplayStep> = {}): ReplayStep => ({
  node_id: "a#1",
  name: "map",
  kind: "operator",
  call_site: "/jobs/own_words.py:9",
  exact: true,
  total: 1,
  records: [record()],
  ...more,
});

test("a record stands beside those that went in for it, as far as they are listed", () => {
  const row = record({ record_id: "read#0#3", path: "/in/docs.txt", line: 3 });
  const came = record({ made_of: ["a#0#read#0#3", "a#0#read#0#9"] });
  const [source, map] = rowsOfSteps([step({ node_id: "a#0", records: [row] }), step({ records: [came] })]);
  expect(source?.rows).toEqual([{ came: row, went: [] }]);
  expect(map?.rows).toEqual([{ came, went: [row] }]);
});

test("a step and its records in words", () => {
  expect(stepText(step({ total: 2 }))).toBe("map (1) at own_words.py:9: 2 records");
  expect(recordPlace(record({ path: "/in/docs.txt", line: 3 }))).toBe("docs.txt:3");
  expect([recordPlace(record()), recordPlace(record({ record_id: null }))]).toEqual(["0#0", "error"]);
  expect(recordText(record({ value: null, key: "North" }))).toBe("North");
});
