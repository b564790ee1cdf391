import { describe, expect, test } from "vitest";
import type {
  ComparedExplanation,
  ExplainedRow,
  Explanation,
  ExplanationCheck,
  ExplanationRule,
  ExplanationTurn,
  Meeting,
  Record,
} from "../api";
import {
  checkText,
  differenceText,
  keptText,
  loopsOf,
  loopText,
  meetingText,
  placeOf,
  plainText,
  ruleText,
  sharedText,
  sidesText,
  sizeText,
  startText,
  turnText,
  untilText,
} from "./sentences";

const record = (more: Partial<Record> = {}): Record => ({ record_id: "3#17", partition: 3, offset: 17, ...more });

const explanation = (more: Partial<Explanation> = {}): Explanation => ({
  kind: "concise",
  application_id: "app",
  name: "labels",
  starts: [],
  rows: [],
  total: 4,
  of: 312_071,
  plain_total: 311_614,
  turns: [],
  rules: [],
  given: [],
  exact: true,
  complete: true,
  verified: null,
  checks: [],
  reasons: [],
  next: null,
  ...more,
});

const start = (total: number, records: Record[]): Explanation["starts"][number] => ({
  node_id: "app#8",
  application_id: "app",
  application_name: "labels",
  name: "saveAsTextFile",
  kind: "sink",
  total,
  records,
});

const turn = (loop: string, number: number, more: Partial<ExplanationTurn> = {}): ExplanationTurn => ({
  loop,
  turn: number,
  node_id: "app#5",
  name: "reduceByKey",
  total: 1,
  records: [record()],
  until: [number],
  rows_total: 0,
  rows: [],
  ...more,
});

test("what is explained", () => {
  const source = { path: "/out/part-0", row: 2, line: 3, text: "9913,17", warning: null };
  expect(startText(explanation({ starts: [start(1, [record({ source })])] }))).toBe("part-0:3 9913,17");
  expect(startText(explanation({ starts: [start(1, [record({ key: "9913" })])] }))).toBe("3#17 9913");
  expect(startText(explanation({ starts: [start(1, [record()])] }))).toBe("3#17");
  expect(startText(explanation({ starts: [start(2, [record()])] }))).toBe("2 records");
});

test("how many rows there are, and of how many", () => {
  expect(sizeText(explanation())).toBe("4 of 312,071 input rows");
  expect(sizeText(explanation({ of: null, total: 1 }))).toBe("1 input row");
  expect(plainText(explanation())).toBe("a plain trace: 311,614");
  expect(plainText(explanation({ plain_total: null }))).toBe("");
});

test("turns belong to their loop, in order", () => {
  const loops = loopsOf([turn("/jobs/labels.py:31", 2), turn("/jobs/labels.py:31", 0), turn("/jobs/other.py:7", 1)]);
  expect(loops.map(({ name, turns }) => [name, turns.map(([number]) => number)])).toEqual([
    ["labels.py:31", [0, 2]],
    ["other.py:7", [1]],
  ]);
  expect(loops.map(loopText)).toEqual(["Loop at labels.py:31: 1 turn decided", "Loop at other.py:7: 1 turn decided"]);
});

test("what a turn gave", () => {
  expect(turnText(2, [turn("a", 2, { total: 3, rows_total: 1 })])).toBe("Turn 2: 3 records; 1 row came in");
  expect(turnText(0, [turn("a", 0), turn("a", 0)])).toBe("Before the loop: 2 records");
  expect(untilText(3, 14)).toBe("unchanged to turn 14");
  expect(untilText(3, 3)).toBe("");
  expect(untilText(3, undefined)).toBe("");
});

test("what a rule kept", () => {
  const rule: ExplanationRule = {
    node_id: "app#12",
    name: "reduceByKey",
    call_site: "/jobs/labels.py:33",
    rule: "winner",
    kept: 3,
    of: 45,
  };
  expect(ruleText(rule)).toBe("reduceByKey (12) at labels.py:33");
  expect(ruleText({ ...rule, call_site: "" })).toBe("reduceByKey (12)");
  expect(keptText(rule)).toBe("what its merges gave back");
  expect(keptText({ ...rule, rule: "unchanged" })).toBe("the same records a turn before");
});

test("where a row is", () => {
  const row: ExplainedRow = {
    node_id: "app#0",
    name: "textFile",
    record_id: "read#0#1",
    path: "/data/edges.csv",
    row: 1,
    line: 2,
    text: "1,2",
    warning: null,
  };
  expect(placeOf(row)).toBe("edges.csv:2");
  expect(placeOf({ ...row, path: null, row: null, line: null })).toBe("read#0#1");
});

describe("of two records", () => {
  const side = { starts: [], total: 4 };
  const meeting: Meeting = {
    equal: true,
    shared: [{ what: "field 2", text: "r00037" }],
    a: side,
    b: { ...side, total: 2 },
    both_total: 2,
    meets: { node_id: "app#12", name: "reduceByKey", loop: "/jobs/labels.py:31", turn: 1, total: 1, records: [] },
  };

  test("what they share is said, and that it is nothing, or not known", () => {
    expect(sharedText(meeting)).toBe("Both have field 2 'r00037'");
    expect(sharedText({ ...meeting, equal: false, shared: [] })).toContain("nothing in common");
    expect(sharedText({ ...meeting, equal: null, shared: [] })).toContain("not known");
  });

  test("where they meet, in which turn if in a loop", () => {
    expect(meetingText(meeting)).toBe("They meet in turn 1 of the loop at labels.py:31, at reduceByKey (12)");
    const alone = { node_id: "app#3", name: "join", loop: null, turn: null, total: 1, records: [] };
    expect(meetingText({ ...meeting, meets: alone })).toBe("They meet at join (3)");
    expect(meetingText({ ...meeting, meets: null })).toBe("Their explanations share no record.");
  });

  test("how many rows count for each", () => {
    expect(sidesText(meeting)).toBe("4 rows count for A, 2 for B, 2 for both");
    expect(sidesText({ ...meeting, a: { ...side, total: 1 } })).toBe("1 row counts for A, 2 for B, 2 for both");
  });
});

test("how many rows differ in another run", () => {
  const compared = { same: 3, gone_total: 1, new_total: 1000 } as ComparedExplanation;
  expect(differenceText(compared)).toBe("3 rows are the same, 1 gone, 1,000 new");
  expect(differenceText({ ...compared, same: 1 })).toBe("1 row is the same, 1 gone, 1,000 new");
});

test("what was verified, of these rows or of others", () => {
  const check: ExplanationCheck = {
    checked_at: Date.parse("2026-11-27T16:04:00"),
    these_rows: true,
    runs: 2,
    minimal: false,
    total: 4,
    added: [],
    added_total: 0,
    left_out_total: 0,
    notes: [],
  };
  const text = checkText(check);
  expect(text).toMatch(/^Verified on .*2026.*: the job gives it again on these rows alone; 2 runs$/);
  expect(checkText({ ...check, runs: 1, minimal: true })).toMatch(/; 1 run; none of them can be left out$/);
  const others = { ...check, these_rows: false, added_total: 2, left_out_total: 1 };
  expect(checkText(others)).toMatch(
    /of other rows: 4 rows, 2 of them not among these, without 1 row of these; 2 runs$/,
  );
});
