import { expect, test } from "vitest";
import type { OutputDifferences, Replay, ReplayedOutput } from "../api";
import {
  commandOf,
  differenceText,
  differingRows,
  effortText,
  outputPlace,
  outputStart,
  rowsText,
  unlistedRows,
} from "./sentences";

const output = (more: Partial<ReplayedOutput> = {}): ReplayedOutput => ({
  path: "/out/part-0",
  row: 0,
  line: 1,
  record: "app#8#write#0#0",
  verdict: "reproduced",
  was: "b,2",
  is: "b,2",
  alike: 0,
  why: "",
  ...more,
});

const replay = (more: Partial<Replay> = {}): Replay => ({
  replay: "2",
  of_application: "app",
  application: "app2",
  mode: "only",
  strategy: "rows",
  rounds: 1,
  rows: 3,
  of: 7,
  verdict: "reproduced",
  outputs: [output()],
  extra: 0,
  used: [
    {
      node: 0,
      name: "textFile",
      path: "/in/docs.txt",
      rows: [
        [2, 2],
        [6, 1],
      ],
      why: "",
    },
  ],
  diff: null,
  skipped: null,
  refused: null,
  exit_code: 0,
  sandbox: "/home/ann/replays/2",
  began: 1_732_200_000_000,
  seconds: 36.7,
  notes: [],
  steps: null,
  ...more,
});

const differences: OutputDifferences = {
  path: "/out",
  to: "/sandbox/out",
  gone: ["d;6"],
  new: [],
  changed: [{ was: "c,1", is: "c,3", key: "c" }],
  gone_total: 2,
  new_total: 0,
  changed_total: 1,
  same: 2,
  note: "",
};

test("which rows a replay took", () => {
  expect(rowsText(replay())).toBe("on 3 of 7 rows of docs.txt");
  expect(rowsText(replay({ mode: "without", rows: 1, of: null }))).toBe("without 1 row of docs.txt");
  expect(rowsText(replay({ mode: "replace" }))).toBe("with 3 of 7 rows of docs.txt replaced");
  expect(rowsText(replay({ mode: "all" }))).toBe("on all rows");
  expect(effortText(replay({ rounds: 2 }))).toBe("in 2 rounds, 37 s");
});

test("where an output is, and where its trace begins", () => {
  expect(outputPlace(output())).toBe("part-0:1");
  expect(outputStart(output())).toEqual({ record: "app#8#write#0#0" });
  const ofRow = output({ record: null });
  expect(outputStart(ofRow)).toEqual({ path: "/out/part-0", row: 0 });
  const failure = output({ path: null, row: null, line: null, record: null });
  expect([outputPlace(failure), outputStart(failure)]).toEqual(["the failure", null]);
});

test("rows that differ stand side by side", () => {
  expect(differenceText(differences)).toBe("1 changed, 2 gone, 0 new, 2 the same");
  expect(differenceText({ ...differences, same: null, note: "it is no text" })).toBe("not compared: it is no text");
  expect(differingRows(differences)).toEqual([
    { kind: "changed", was: "c,1", is: "c,3" },
    { kind: "gone", was: "d;6", is: null },
  ]);
  expect(unlistedRows(differences)).toBe(1);
});

test.each<[Partial<Replay>, string]>([
  [{}, "lineage replay app /out/part-0:1 -- YOUR COMMAND"],
  [{ outputs: [output({ path: null, line: null })] }, 'lineage replay app "8#write#0#0" -- YOUR COMMAND'],
  [{ outputs: [] }, "lineage replay app --only /in/docs.txt:3-4,7 -- YOUR COMMAND"],
  [{ outputs: [], mode: "without" }, "lineage replay app --without /in/docs.txt:3-4,7 -- YOUR COMMAND"],
  [
    { outputs: [], mode: "replace" },
    'lineage replay app --replace "/in/docs.txt:3=NEW TEXT" --replace "/in/docs.txt:4=NEW TEXT" --replace "/in/docs.txt:7=NEW TEXT" -- YOUR COMMAND',
  ],
  [{ outputs: [], mode: "all", skipped: [] }, "lineage replay app --skip-failing -- YOUR COMMAND"],
])("the command that makes it again: %o", (more, line) => {
  expect(commandOf(replay(more))).toBe(line);
});
