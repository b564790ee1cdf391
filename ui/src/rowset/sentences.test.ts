import { expect, test } from "vitest";
import type { AskedRecord, RowSet, RowSetSource } from "../api";
import { askedText, commandsFor, recordsOf, shareText, sourceText } from "./sentences";

const source = (more: Partial<RowSetSource> = {}): RowSetSource => ({
  node: 0,
  name: "textFile",
  call_site: "/jobs/job.py:12",
  path: "/in.csv",
  whole: false,
  why: null,
  partitions: 2,
  total: 7,
  files: [{ path: "/in.csv", size: 1, modified: 1, rows: [[2, 2]] }],
  splits: [
    {
      split: 0,
      positions: [
        [2, 2],
        [5, 1],
      ],
    },
  ],
  listed: [],
  ...more,
});

const asked = (more: Partial<AskedRecord> = {}): AskedRecord => ({
  node: 3,
  record_id: "write#0#0",
  path: "/out/part-0",
  row: 0,
  text: "EWR,2013-02,57.812345678",
  key: null,
  ...more,
});

test("what was asked for", () => {
  expect(askedText([asked()])).toBe("part-0:1 EWR,2013-02,57.8123");
  expect(askedText([asked({ path: null, row: null, text: null, key: "North" })])).toBe("write#0#0 North");
  expect(askedText([asked(), asked()])).toBe("2 records");
  expect(askedText([])).toBe("no record");
});

test("how much of a source is meant", () => {
  expect(sourceText(source())).toBe("textFile (0) at job.py:12");
  expect(sourceText(source({ call_site: null }))).toBe("textFile (0)");
  expect(recordsOf(source())).toBe(3);
  expect(shareText(source())).toBe("3 of 7 records");
  expect(shareText(source({ total: null }))).toBe("3 records");
  expect(shareText(source({ whole: true }))).toBe("all 7 records");
  expect(shareText(source({ whole: true, total: null }))).toBe("all records");
});

test("rows of an output can be made again, rows of an input can be left out", () => {
  const rowSet = (record: string): RowSet => ({
    application: "app",
    sources: [source()],
    asked: [asked({ record_id: record })],
    exact: true,
    complete: true,
    how: null,
  });
  const lines = (record: string) => commandsFor("app", { record }, rowSet(record)).map(([, line]) => line);
  expect(lines("write#0#0")).toEqual([
    'lineage rows app "write#0#0" --extract fixture',
    'lineage rows app "write#0#0" --extract fixture --without',
    'lineage replay app "write#0#0" -- YOUR COMMAND',
    'lineage rows app "write#0#0" --output rows.json',
    "lineage replay app --without rows.json -- YOUR COMMAND",
  ]);
  expect(lines("read#0#0")).toHaveLength(4);
  expect(commandsFor("app", { failure: 2 }, rowSet("read#0#0")).map(([, line]) => line)).toContain(
    "lineage replay app --failure 2 -- YOUR COMMAND",
  );
});
