import { expect, test } from "vitest";
import type { Failure, Replay, ReplayedOutput } from "../api";
import type { DirectedTrace } from "../trace/model";
import { failuresOn, linesOf, outputOf, replaysOf, wayOf } from "./sentences";

const RECORD = {
  record_id: "write#0#3",
  partition: 0,
  offset: 3,
  source: { path: "/out/part-0", row: 3, line: 4, text: "x", warning: null },
};

const trace = (kind: string, total = 1): DirectedTrace => {
  const about = { application_id: "app", application_name: "job", name: "n", kind, total, records: [RECORD] };
  const node = { ...about, exact: true, reason: "", state: null };
  return {
    direction: "backward",
    startNode: "app#8",
    start: [RECORD],
    starts: [{ ...about, node_id: "app#8" }],
    complete: true,
    exact: true,
    isPartial: false,
    nodes: [
      { ...node, node_id: "app#8" },
      { ...node, node_id: "app#0", remarks: [], remarks_of: 40 },
    ],
    flows: [],
  };
};

test("a way has the record, its operations, and what was looked at", () => {
  const way = wayOf(trace("sink"));
  expect([way.startNode, way.record, way.isInput, way.looked]).toEqual(["app#8", RECORD, false, 40]);
  expect([...way.nodes]).toEqual(["app#8", "app#0"]);
  expect(wayOf(trace("source")).isInput).toBe(true);
  expect(wayOf(trace("sink", 2)).record).toBeNull();
});

test("failures are those on the way, or the one that is named", () => {
  const failures = ["app#0", "app#5", null].map((node_id, at) => ({ failure: at + 1, node_id }) as Failure);
  const way = wayOf(trace("sink"));
  expect(failuresOn({ record: "write#0#3" }, way, failures).map(({ failure }) => failure)).toEqual([1]);
  expect(failuresOn({ failure: 2 }, way, failures).map(({ failure }) => failure)).toEqual([2]);
});

test("replays of a record name it, or its row", () => {
  const replay = (output: Partial<ReplayedOutput>) => ({ outputs: [output] }) as Replay;
  const [byRecord, byRow] = [
    replay({ record: "app#8#write#0#3" }),
    replay({ record: null, path: "/out/part-0", row: 3 }),
  ];
  const other = replay({ record: "app#8#write#0#4", path: "/out/part-0", row: 4 });
  expect(replaysOf(wayOf(trace("sink")), [byRecord, other, byRow])).toEqual([byRecord, byRow]);
  expect(replaysOf(wayOf(trace("sink", 2)), [byRecord])).toEqual([]);
});

test("a failure is no output, and an input cannot be made again", () => {
  expect(outputOf({ failure: 1 })).toBeNull();
  expect(outputOf({ node: "8", key: "A" })).toBe('[{"node":"8","key":"A"}]');
  expect(linesOf("app", { record: "write#0#3", node: "8" }).map(([, line]) => line)).toEqual([
    'lineage replay app "write#0#3" --node 8 --step -- YOUR COMMAND',
    'lineage sift app --wrong "8#write#0#3" -- YOUR COMMAND',
    'lineage influence app "write#0#3" --node 8 -- YOUR COMMAND',
    'lineage rows app "write#0#3" --node 8 --extract fixture',
  ]);
  expect(linesOf("app", { record: "read#0#3" }).map(([, line]) => line)).toEqual([
    'lineage rows app "read#0#3" --extract fixture',
  ]);
});
