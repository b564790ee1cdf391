import { expect, test } from "vitest";
import type { Failure, SourceRow } from "../api";
import { attemptsText, failureLine, operationText, taskText } from "./sentences";

const row = (line: number, path = "/data/orders.csv"): SourceRow => ({
  path,
  row: line - 1,
  line,
  text: "text",
  warning: null,
});

const failure = (more: Partial<Failure> = {}): Failure => ({
  failure: 1,
  error: "ZeroDivisionError",
  message: "division by zero",
  frame: null,
  node_id: "app#4",
  name: "map",
  call_site: "/jobs/job.py:41",
  stage: 0,
  partition: 3,
  attempts: 4,
  record: { record_id: "read#3#17", node_id: "app#3", value: null },
  sources: [row(41_018)],
  sources_total: 1,
  exact: true,
  recovered: false,
  reason: "",
  ...more,
});

test.each([
  [{}, "map at job.py:41 failed on line 41,018 of orders.csv"],
  [{ recovered: true }, "map at job.py:41 failed on line 41,018 of orders.csv, and a later attempt ended well"],
  [
    { sources: [row(1), row(2)], sources_total: 2 },
    "map at job.py:41 failed on a record made of 2 input rows of orders.csv",
  ],
  [{ sources: [], sources_total: 1 }, "map at job.py:41 failed on record read#3#17"],
  [
    { exact: false, sources: [row(1), row(2, "/data/b.csv")], sources_total: 1_200, record: null },
    "map at job.py:41 failed on one of 1,200 input rows of orders.csv, b.csv",
  ],
  [{ exact: false }, "map at job.py:41 failed, perhaps on line 41,018 of orders.csv"],
  [
    { exact: false, sources: [], sources_total: 0, record: null },
    "map at job.py:41 failed on a record that is not known",
  ],
])("a failure is said in one line: %o", (more, line) => {
  expect(failureLine(failure(more))).toBe(line);
});

test("an operation without a line, and a failure without an operation", () => {
  expect(operationText({ name: "collect", call_site: "" })).toBe("collect");
  expect(operationText({ name: null, call_site: null })).toBe("The program");
});

test("attempts and tasks", () => {
  expect(attemptsText({ attempts: 1, recovered: true })).toBe("1 attempt, and a later one ended well");
  expect(attemptsText({ attempts: 0, recovered: false })).toBe("no task has reported it");
  expect(taskText({ partition: 3, stage: 0 })).toBe("partition 3 of stage 0");
  expect(taskText({ partition: null, stage: null })).toBe("");
});
