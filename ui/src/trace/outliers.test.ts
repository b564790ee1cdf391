import { expect, test } from "vitest";
import { adjacencyOf } from "./adjacency";
import { flow, node, record, trace } from "./fixture";
import { directedTraceOf, lineageOf } from "./model";
import { onlyPath, withOutliers } from "./outliers";
import { pictureOf } from "./picture";

const listed = Array.from({ length: 50 }, (_, offset) => record(0, offset));
const backward = directedTraceOf(
  trace(
    "backward",
    [node(2, [record(0, 0)]), node(0, listed, { total: 900, kind: "source" })],
    listed.map(({ record_id }) => flow(`app#0#${record_id}`, "app#2#0#0")),
  ),
);
/** Of the row 700: it also went into another record. */
const forward = directedTraceOf(
  trace(
    "forward",
    [node(0, [record(0, 700)]), node(2, [record(0, 0), record(0, 1)])],
    [flow("app#0#0#700", "app#2#0#0"), flow("app#0#0#700", "app#2#0#1")],
  ),
);
const path = onlyPath(forward, "app#0", "app#0#0#700", "app#2#0#0");

test("of what a row became, only what leads to the record is kept", () => {
  expect([...path.records.keys()]).toEqual(["app#0", "app#2"]);
  expect(path.records.get("app#2")?.map(({ record_id }) => record_id)).toEqual(["0#0"]);
  expect(path.flows).toEqual([flow("app#0#0#700", "app#2#0#0")]);
});

test("a row that stands out is drawn with its line, beside a sample of the others", () => {
  const lineage = lineageOf([withOutliers(backward, [path])], []);
  const outliers = { rows: new Set([path.outlier]), ways: new Set([path.outlier, "app#2#0#0"]) };
  const picture = pictureOf(lineage, adjacencyOf(lineage.flows), { more: new Map(), further: new Set(), outliers });
  const boxes = picture.groups.find((group) => group.node.id === "app#0")?.boxes ?? [];
  expect(boxes.map(({ hash, isOutlier }) => [hash, isOutlier])).toEqual([
    ["app#0#0#700", true],
    ["app#0#0#0", false],
    ["app#0#0#17", false],
    ["app#0#0#34", false],
  ]);
  expect(picture.links).toContainEqual({ from: "app#0#0#700", to: "app#2#0#0", flows: 1 });
});
