import { expect, test } from "vitest";
import type { SourceRow, Suspect, Suspects } from "../api";
import { filesOf, remarksOf, replayLines, scoreText, summaryOf } from "./sentences";

const row = (at: number, path = "/in.csv"): SourceRow => ({ path, row: at, line: at + 1, text: "x", warning: null });

const suspect = (more: Partial<Suspect> = {}): Suspect => ({
  rank: 1,
  node_id: "app#1",
  name: "flatMap",
  call_site: "/jobs/job.py:12",
  partition: 3,
  score: 22.61,
  unusual: true,
  feature: "outputs",
  value: 57,
  low: 1,
  high: 3,
  others: 100,
  why: "it gave 57",
  record: { record_id: "3#17", node_id: "app#0" },
  sources: [row(88)],
  sources_total: 1,
  leads_to_bad: null,
  follows_from: null,
  ...more,
});

const suspects = (more: Partial<Suspects> = {}): Suspects => ({
  application_id: "app",
  name: "job",
  method: "graded",
  suspects: [suspect()],
  total: 1,
  tasks: 12,
  tests: 40,
  threshold: 9,
  bad: 0,
  good: 0,
  earlier: 0,
  complete: true,
  how: [],
  ...more,
});

test("scores", () => {
  expect(scoreText(22.61, "graded")).toBe("22.6 bits of surprise");
  expect(scoreText(2, "newt")).toBe("score 2");
});

test("what is known beside the evidence", () => {
  expect(remarksOf(suspect())).toEqual(["unusual"]);
  expect(remarksOf(suspect({ unusual: false, leads_to_bad: false, follows_from: 1 }))).toEqual([
    "may be chance",
    "leads to no bad output",
    "follows from suspect 1",
  ]);
});

test.each<[Partial<Suspects>, string]>([
  [{}, "12 tasks were compared: 1 is unusual."],
  [{ total: 4 }, "12 tasks were compared: at least 1 is unusual, 3 more have a score."],
  [
    { suspects: [suspect(), suspect({ unusual: false })], total: 2 },
    "12 tasks were compared: 1 is unusual, 1 more may be chance.",
  ],
  [{ suspects: [], total: 0 }, "12 tasks were compared: nothing is odd."],
  [{ suspects: [suspect({ unusual: false })] }, "12 tasks were compared: nothing is more than chance."],
  [{ method: "newt" }, "12 tasks were compared: 1 task has a score."],
  [{ bad: 1, good: 2, tasks: 1 }, "1 task was compared, in the lineage of 1 bad output and 2 good ones: 1 is unusual."],
])("the summary: %o", (more, text) => {
  expect(summaryOf(suspects(more))).toBe(text);
});

test("rows are named by file, as ranges", () => {
  expect(filesOf([row(4), row(9, "/b"), row(5)])).toEqual([
    { path: "/in.csv", rows: [[4, 2]] },
    { path: "/b", rows: [[9, 1]] },
  ]);
});

test("the job runs again on the rows of a suspect, which are named one by one or as a row set", () => {
  const lines = (more: Partial<Suspect>) => replayLines("app", suspect(more)).map(([, line]) => line);
  expect(lines({})).toEqual([
    "lineage replay app --only /in.csv:89 -- YOUR COMMAND",
    "lineage replay app --without /in.csv:89 -- YOUR COMMAND",
  ]);
  expect(lines({ sources_total: 300 })).toEqual([
    'lineage rows app "0#3#17" --output rows.json',
    "lineage replay app --without rows.json -- YOUR COMMAND",
  ]);
  expect(lines({ record: null, sources: [], sources_total: 0 })).toEqual([]);
});
